/**
 * Calls `action` for every item, `width` at a time, and waits for all. The first failure stops the rest and is thrown once what is
 * under way has ended.
 */
export async function eachSideBySide<Item>(
  items: Iterable<Item>,
  width: number,
  action: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items[Symbol.iterator]();
  const failures: unknown[] = [];
  const lane = async (): Promise<void> => {
    while (failures.length === 0) {
      const { done, value } = left.next();
      if (done === true) return;
      await action(value).catch((error: unknown) => void failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  if (failures.length > 0) throw failures[0];
}
