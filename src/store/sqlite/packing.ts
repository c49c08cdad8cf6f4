/**
 * Values on their way to another thread, as one flat array. Cloning that takes a third of the time of cloning the objects, because
 * the names of members are sent once, with the first object that has them.
 */
export interface Packed {
  /** The shapes that no message before had. Their numbers continue those of the shapes before. */
  readonly newShapes: readonly Shape[];
  /** How many values there are. */
  readonly count: number;
  /** Each object as the number of its shape and its members, each array as `array`, its length and its items. */
  readonly parts: readonly unknown[];
}

/** The members of an object, in their order. */
type Shape = readonly Member[];

interface Member {
  readonly name: string;
  /** Whether its value is packed, too. Others are cloned as they are. */
  readonly isPacked: boolean;
}

/** What stands in `parts` in place of the number of a shape. */
const array = -1;
const asItIs = -2;

/** Shapes that are remembered, at most. Objects of further shapes are cloned as they are. */
const shapesMax = 4_096;

/** A node of the tree of shapes: the members on the way to it. */
interface ShapeNode {
  readonly shape: Shape;
  /** The number of the shape; undefined while no object had it. */
  number?: number;
  /** The nodes with one more member, by its name. */
  readonly packed: Map<string, ShapeNode>;
  readonly cloned: Map<string, ShapeNode>;
}

const createNode = (shape: Shape): ShapeNode => ({ shape, packed: new Map(), cloned: new Map() });

/**
 * Returns the function that packs values and passes them to `send`. The other thread must unpack all that is sent, in its order. If
 * `send` throws, the new shapes are sent with the next values.
 */
export function createPacker(): (values: readonly unknown[], send: (packed: Packed) => void) => void {
  const root = createNode([]);
  let shapeCount = 0;
  let newShapes: Shape[] = [];
  let parts: unknown[] = [];

  function nodeAfter({ shape, packed, cloned }: ShapeNode, name: string, isPacked: boolean): ShapeNode {
    const next = isPacked ? packed : cloned;
    const known = next.get(name);
    if (known !== undefined) return known;
    const made = createNode([...shape, { name, isPacked }]);
    // Not remembered above the limit, so that the tree is bounded as well.
    if (shapeCount < shapesMax) next.set(name, made);
    return made;
  }

  function packArray(items: readonly unknown[]): void {
    parts.push(array, items.length);
    for (const item of items) pack(item);
  }

  function packObject(object: Readonly<Record<string, unknown>>): void {
    const start = parts.length;
    parts.push(asItIs);
    let node = root;
    for (const name in object) {
      const value = object[name];
      const isPacked = isPackable(value);
      node = nodeAfter(node, name, isPacked);
      if (isPacked) pack(value);
      else parts.push(value);
    }
    if (node.number === undefined && shapeCount < shapesMax) {
      node.number = shapeCount;
      shapeCount += 1;
      newShapes.push(node.shape);
    }
    if (node.number !== undefined) parts[start] = node.number;
    else {
      parts.length = start;
      parts.push(asItIs, object);
    }
  }

  function pack(value: unknown): void {
    if (!isPackable(value)) parts.push(asItIs, value);
    else if (Array.isArray(value)) packArray(value);
    else packObject(value);
  }

  return (values, send) => {
    parts = [];
    for (const value of values) pack(value);
    send({ newShapes, count: values.length, parts });
    newShapes = [];
  };
}

/** Arrays and objects without a class. */
function isPackable(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
}

/** Returns the function that unpacks what a packer sent. */
export function createUnpacker(): (packed: Packed) => unknown[] {
  const shapes: Shape[] = [];
  let parts: readonly unknown[] = [];
  let at = 0;

  const next = (): unknown => parts[at++];

  function unpack(): unknown {
    const number = next() as number;
    if (number === asItIs) return next();
    if (number === array) return Array.from({ length: next() as number }, unpack);
    const object: Record<string, unknown> = {};
    for (const { name, isPacked } of shapes[number] as Shape) object[name] = isPacked ? unpack() : next();
    return object;
  }

  return (packed) => {
    shapes.push(...packed.newShapes);
    ({ parts } = packed);
    at = 0;
    return Array.from({ length: packed.count }, unpack);
  };
}
