import assert from 'node:assert/strict';

/** Scraped metrics. */
export interface Scraped {
  readonly text: string;
  /** The value of a sample, undefined if there is none: `value('artseal_numbers_left', { kind: 'filing' })`. */
  value(name: string, labels?: Record<string, string>): number | undefined;
  /** The labels of all samples of a name. */
  labelsOf(name: string): Record<string, string>[];
}

/** Reads the metrics at http://host:port/metrics. */
export async function scrape(url: string): Promise<Scraped> {
  const answer = await fetch(url);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const samples = text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(sampleOf);
  return {
    text,
    value: (name, labels = {}) =>
      samples.find((sample) => sample.name === name && areSame(sample.labels, labels))?.value,
    labelsOf: (name) => samples.filter((sample) => sample.name === name).map(({ labels }) => labels),
  };
}

function sampleOf(line: string) {
  const [, name = '', labels = '', value = ''] = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  assert.notEqual(name, '', line);
  const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, label, text]) => [label, text]);
  return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
}

function areSame(one: Record<string, string>, other: Record<string, string>): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
