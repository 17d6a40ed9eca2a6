// BullMQ: `addBulk` for bulk; completed jobs are removed at once.
import { Queue, QueueEvents, Worker } from "bullmq";
import { Redis } from "ioredis";
import { Peer, serve, UnsupportedError } from "./serving.mjs";

const KEEP = { removeOnComplete: true };

class BullMQ extends Peer {
  async open() {
    this.connection = new Redis(this.url, { maxRetriesPerRequest: null });
    this.queues = new Map();
    this.events = new Map();
  }

  queue(name) {
    if (!this.queues.has(name)) this.queues.set(name, new Queue(name, { connection: this.connection }));
    return this.queues.get(name);
  }

  async add(queue, payload) {
    return this.queue(queue).add("job", { p: payload }, KEEP);
  }

  async addMany(queue, payloads, groups) {
    if (groups) throw new UnsupportedError("groups are a paid extra");
    await this.queue(queue).addBulk(payloads.map((p) => ({ name: "job", data: { p }, opts: KEEP })));
  }

  async run(queue, payload) {
    if (!this.events.has(queue)) {
      const events = new QueueEvents(queue, { connection: this.connection.duplicate() });
      await events.waitUntilReady();
      this.events.set(queue, events);
    }
    const job = await this.queue(queue).add("job", { p: payload }, { removeOnComplete: { count: 1000 } });
    await job.waitUntilFinished(this.events.get(queue), 10000);
  }

  async worker(name, slots) {
    const connection = new Redis(this.url, { maxRetriesPerRequest: null });
    const worker = new Worker(name, async (job) => this.ran(job.data.p), { connection, concurrency: slots });
    await worker.waitUntilReady();
    return async () => {
      await worker.close(true);
      connection.disconnect();
    };
  }
}

await serve(BullMQ);
