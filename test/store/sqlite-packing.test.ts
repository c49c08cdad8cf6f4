import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createPacker, createUnpacker, type Packed } from '../../src/store/sqlite/packing.ts';

/** Passes values as they are passed between threads. */
function createPassage() {
  const pack = createPacker();
  const unpack = createUnpacker();
  const sent: Packed[] = [];
  return {
    sent,
    pass: (values: readonly unknown[]): unknown[] => {
      pack(values, (packed) => sent.push(structuredClone(packed)));
      return unpack(sent.at(-1) as Packed);
    },
    pack,
    unpack,
  };
}

describe('values on their way to another thread', () => {
  it('arrive as they were sent', () => {
    const { pass } = createPassage();
    const values = [
      undefined,
      null,
      'text',
      -2,
      -1,
      7n,
      true,
      {},
      [],
      [[-1], [], [{ a: 1 }, 'b', null, undefined]],
      { price: 128n, at: { atMs: 1.5, real: undefined }, list: [1, { deep: ['x'] }], none: null },
      { price: 129n, at: { atMs: 2.5, real: undefined }, list: [], none: null },
      { at: 5, price: { text: 'another order, other kinds' } },
      new Map([['key', { inner: new Set([1]) }]]),
      { bytes: new Uint8Array([1, 2]), date: new Date(5), map: new Map() },
    ];
    assert.deepEqual(pass(values), values);
    assert.deepEqual(pass(values.toReversed()), values.toReversed());
    assert.deepEqual(pass([]), []);
  });

  it('have the names of their members sent once', () => {
    const { pass, sent } = createPassage();
    pass([
      { author: 'a', era: 'b' },
      { author: 'c', era: 'd' },
    ]);
    pass([{ author: 'e', era: 'f' }]);
    assert.equal(sent[0]?.newShapes.length, 1);
    assert.deepEqual(sent[1]?.newShapes, []);
    assert.ok(!JSON.stringify(sent[1]).includes('author'));
  });

  it('arrive after a message that could not be sent', () => {
    const { pass, pack } = createPassage();
    assert.throws(() =>
      pack([{ first: 1 }], () => {
        throw new Error('not cloneable');
      }),
    );
    assert.deepEqual(pass([{ first: 2 }, { second: 3 }]), [{ first: 2 }, { second: 3 }]);
  });

  it('arrive with more shapes than are remembered', () => {
    const { pass, sent } = createPassage();
    const values = Array.from({ length: 5_000 }, (_, nth) => ({ [`name${nth}`]: { [`inner${nth}`]: nth } }));
    assert.deepEqual(pass(values), values);
    assert.deepEqual(pass(values), values);
    assert.ok((sent[1]?.newShapes.length ?? 0) === 0);
  });
});
