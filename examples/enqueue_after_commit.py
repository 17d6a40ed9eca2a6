"""Orders in a database, and a workflow for each of them: only for those that were committed.

A workflow that is started within a transaction may run before the order is there, or for one that never will be. Here
the runs are collected, and sent when the transaction has committed.

    LANNER_REDIS_URL=embedded python examples/enqueue_after_commit.py
"""

import asyncio
import tempfile
from dataclasses import dataclass

from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from lanner import Context, WorkflowNamespace

ns = WorkflowNamespace("bookshop")
sessions: sessionmaker[Session] = sessionmaker()

LIMIT = 100


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    job_id: Mapped[str]


@dataclass(frozen=True)
class Parcel:
    order: int


@ns.workflow("ship")
async def ship(ctx: Context[Parcel]) -> str:
    title = await ctx.step.do("read the order", title_of, ctx.input.order)
    return f"shipped {title}"


def title_of(order: int) -> str:
    with sessions() as session:
        return session.scalars(select(Order.title).where(Order.id == order)).one()


async def buy(number: int, title: str, price: int) -> None:
    # the transaction stands within: at the end of its block it has been committed, and only then are the runs sent
    async with ns.pending() as pending:
        with sessions.begin() as session:
            job = pending.run(ship, Parcel(number))
            session.add(Order(id=number, title=title, job_id=job.id))
            session.flush()
            if price > LIMIT:
                raise ValueError(f"nobody pays {price} for {title}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        engine = create_engine(f"sqlite:///{directory}/orders.db")
        sessions.configure(bind=engine)
        Base.metadata.create_all(engine)
        async with ns, ns.worker():
            await buy(1, "Emma", 12)
            try:
                await buy(2, "Persuasion", 1_200)
            except ValueError as error:
                print(f"rolled back: {error}")
            with sessions() as session:
                for order in session.scalars(select(Order)):
                    print(f"order {order.id}: {await ship.get_job(order.job_id).wait(timeout=30)}")
            counts = await ship.counts()
            print(f"jobs: {counts.completed} completed, {counts.waiting} waiting")
        engine.dispose()


if __name__ == "__main__":
    asyncio.run(main())
