// groupmq: every job has a group. Where groups do not matter there are as many as slots, as in its own benchmark, which
// is its fastest, and many calls at once are batched (`autoBatch`). Plain, every job has a group of its own, as
// independent jobs do, and calls are sent as they come. Nothing is kept (the default).
import { randomUUID } from "node:crypto";
import { Queue, Worker } from "groupmq";
import { Redis } from "ioredis";
import { Peer, serve } from "./serving.mjs";

const GROUPS = 100;
const PLAIN = process.argv[3] === "plain";

class GroupMQ extends Peer {
  async open() {
    this.connection = new Redis(this.url, { maxRetriesPerRequest: null });
    this.queues = new Map();
  }

  queue(name, batched = false) {
    const autoBatch = batched && !PLAIN;
    const key = `${name} ${autoBatch}`;
    if (!this.queues.has(key)) {
      const options = { redis: this.connection, namespace: name };
      this.queues.set(key, new Queue(autoBatch ? { ...options, autoBatch: { size: 100, maxWaitMs: 1 } } : options));
    }
    return this.queues.get(key);
  }

  async add(queue, payload) {
    this.turn = ((this.turn ?? 0) + 1) % GROUPS;
    const groupId = PLAIN ? randomUUID() : `g${this.turn}`;
    await this.queue(queue, this.batching).add({ groupId, data: { p: payload } });
  }

  async add_at_once(options) {
    this.batching = true;
    try {
      return await super.add_at_once(options);
    } finally {
      this.batching = false;
    }
  }

  async fill({ slots = GROUPS, ...options }) {
    return super.fill({ ...options, groups: options.groups || (PLAIN ? 0 : slots) });
  }

  async addMany(name, payloads, groups) {
    const queue = this.queue(name, true);
    await Promise.all(payloads.map((p, i) => queue.add({ groupId: groups ? `g${i % groups}` : randomUUID(), data: { p } })));
  }

  async worker(name, slots) {
    const redis = new Redis(this.url, { maxRetriesPerRequest: null });
    const queue = new Queue({ redis, namespace: name });
    const handler = async (job) => this.ran(job.data.p);
    const worker = new Worker({ queue, handler, concurrency: slots });
    worker.run();
    return async () => {
      await worker.close(1000);
      redis.disconnect();
    };
  }
}

await serve(GroupMQ);
