/**
 * Loaded before a gateway (see preload.ts): an error where no code expects one. A body that holds the
 * mark cannot be written as JSON, as it would be after a defect in a translation.
 */
const MARK = "fault-injected-by-a-test";
const { stringify } = JSON;

JSON.stringify = (value, ...rest) => {
  const text = stringify(value, ...rest);
  if (text?.includes(MARK) && text.includes('"messages"')) throw new RangeError("injected");
  return text;
};
