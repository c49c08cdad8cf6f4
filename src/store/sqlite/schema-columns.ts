import { customType } from 'drizzle-orm/sqlite-core';

/** An amount in minor units. It is at most 2^53-1, so the driver's number is exact. */
export const money = customType<{ data: bigint; driverData: bigint | number }>({
  dataType: () => 'integer',
  fromDriver: (value) => BigInt(value),
});
