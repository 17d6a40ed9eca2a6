// Answers, one JSON line for each, what the TypeScript library superjson makes of texts. Run with the path of a
// node_modules directory that holds it.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { SuperJSON } = await import(pathToFileURL(`${process.argv[2]}/superjson/dist/index.js`).href);
const superjson = new SuperJSON();
const deduplicating = new SuperJSON({ dedupe: true });

class Money {
  constructor(amount, currency) {
    Object.assign(this, { amount, currency });
  }
}
superjson.registerClass(Money, "peer.Money");
superjson.registerCustom(
  {
    isApplicable: (value) => value instanceof Date && value.zone !== undefined,
    serialize: (value) => `${value.toISOString()}[${value.zone}]`,
    deserialize: (text) => Object.assign(new Date(text.replace(/\[.*$/, "")), { zone: /\[([^\]]+)\]/.exec(text)?.[1] }),
  },
  "datetime",
);

// a value as text that tells everything apart, whatever the order of keys and of a set's items
function shape(value) {
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(shape)}]`;
  if (value instanceof Date) return `Date(${value.toISOString()} ${value.zone})`;
  if (value instanceof RegExp) return String(value);
  if (value instanceof URL) return `URL(${value.href})`;
  if (value instanceof Set) return `Set(${[...value].map(shape).sort()})`;
  if (value instanceof Map) return `Map(${[...value].map(shape)})`;
  if (value instanceof Error) return `Error(${shape([value.name, value.message, value.stack, "cause" in value, value.cause])})`;
  if (ArrayBuffer.isView(value)) return `${value.constructor.name}(${[...value].map(shape)})`;
  const keys = Object.keys(value).sort();
  return `${value.constructor?.name} {${keys.map((key) => `${JSON.stringify(key)}:${shape(value[key])}`)}}`;
}

const answers = {
  shapeOfText: ({ text }) => shape(superjson.parse(text)),
  shapeOfExpression: ({ expression }) => shape(eval(`(${expression})`)),
  write: ({ expression, dedupe }) => (dedupe ? deduplicating : superjson).stringify(eval(`(${expression})`)),
  rewrite: ({ text }) => superjson.stringify(superjson.parse(text)),
};

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  try {
    console.log(JSON.stringify({ answer: answers[question.ask](question) }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
