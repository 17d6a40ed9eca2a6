// A contestant's process on Node: the counterpart of serving.py, measured the same way.
import { createInterface } from "node:readline";

const CHUNK = 1000;
const LONGEST_NS = 1e9;
const now = () => Number(process.hrtime.bigint());
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

export class UnsupportedError extends Error {}

export class Peer {
  constructor(url) {
    this.url = url;
    this.delays = null;
  }

  async open() {}

  ran(payload) {
    if (this.delays !== null) {
      this.delays.push(Number(process.hrtime.bigint() - BigInt(payload)));
      return;
    }
    this.count += 1;
    if (this.count === 1) this.first = now();
    if (this.count === this.expected) {
      this.last = now();
      this.allRan();
    }
  }

  async fill({ queue, jobs, size = 100, groups = 0 }) {
    const payload = "x".repeat(size);
    const began = now();
    for (let start = 0; start < jobs; start += CHUNK) {
      await this.addMany(queue, Array(Math.min(CHUNK, jobs - start)).fill(payload), groups);
    }
    return (now() - began) / 1e9;
  }

  async add_one_by_one({ queue, jobs }) {
    const payload = "x".repeat(100);
    await this.add(queue, payload); // opens what is opened when first used
    const began = now();
    for (let i = 0; i < jobs; i += 1) await this.add(queue, payload);
    return (now() - began) / 1e9;
  }

  async add_at_once({ queue, jobs, width }) {
    const payload = "x".repeat(100);
    let left = jobs;
    const produce = async () => {
      while (left > 0) {
        left -= 1;
        await this.add(queue, payload);
      }
    };
    await this.add(queue, payload);
    const began = now();
    await Promise.all(Array.from({ length: width }, produce));
    return (now() - began) / 1e9;
  }

  async work({ queue, slots, jobs }) {
    this.delays = null;
    this.count = 0;
    this.expected = jobs;
    const done = new Promise((resolve) => (this.allRan = resolve));
    const stop = await this.worker(queue, slots);
    await done;
    await stop();
    return (this.last - this.first) / 1e9;
  }

  async listen({ queue, slots, timing = true }) {
    this.delays = timing ? [] : null;
    this.count = 0;
    this.expected = -1;
    this.stop = await this.worker(queue, slots);
  }

  async hush() {
    await this.stop();
    const delays = this.delays ?? [];
    this.delays = null;
    return delays;
  }

  async counted() {
    return this.delays !== null ? this.delays.length : this.count;
  }

  async ping({ queue, jobs, pause }) {
    for (let i = 0; i < jobs; i += 1) {
      await sleep(pause);
      await this.add(queue, process.hrtime.bigint().toString());
    }
  }

  async round_trip({ queue, jobs }) {
    const took = [];
    const deadline = now() + LONGEST_NS;
    while (took.length < jobs && now() < deadline) {
      await sleep(0.005);
      const began = process.hrtime.bigint();
      await this.run(queue, began.toString());
      took.push(Number(process.hrtime.bigint() - began));
    }
    return took;
  }

  async run() {
    throw new UnsupportedError("no waiting for a result");
  }
}

export async function serve(PeerClass) {
  const answer = (what) => process.stdout.write(JSON.stringify(what) + "\n");
  const peer = new PeerClass(process.argv[2]);
  await peer.open();
  answer({ ok: "ready" });
  for await (const line of createInterface({ input: process.stdin })) {
    const { call, ...options } = JSON.parse(line);
    try {
      answer({ ok: (await peer[call](options)) ?? null });
    } catch (error) {
      if (error instanceof UnsupportedError) answer({ unsupported: error.message });
      else answer({ error: `${error.name}: ${error.message}` });
    }
  }
  process.exit(0);
}
