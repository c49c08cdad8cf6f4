import type { Platform } from './callers.ts';

const mark = '-of-';

/** The id of a buyer of a platform. */
export const buyerOf = ({ caller }: Pick<Platform, 'caller'>, name: string): string =>
  `${name}${mark}${caller}`;

/** The name of the platform whose buyer it is; undefined if it is nobody's. */
export const platformOf = (buyerId: string): string | undefined => buyerId.split(mark)[1];
