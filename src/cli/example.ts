/** The artwork that the greeting and the demo file, at a price that every institution takes. */
export const exampleArtwork = {
  author: 'Qi Baishi',
  era: '1947',
  size: '68 x 136 cm',
  material: 'ink and colour on paper',
  condition: 'two restored creases',
  price: 12_800_000,
};
