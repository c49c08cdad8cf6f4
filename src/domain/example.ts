/** The artwork of the examples: of the greeting, the demo and the page at `/`. Every provider takes its price. */
export const exampleArtwork = {
  author: 'Qi Baishi',
  era: '1947',
  size: '68 x 136 cm',
  material: 'ink and colour on paper',
  condition: 'two restored creases',
  price: 12_800_000,
};
