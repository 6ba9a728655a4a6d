/**
 * The arguments of a finished tool call. Some models write nothing where they mean no arguments, but clients parse JSON;
 * arguments that were cut off stay as they are.
 */
export function finishedArguments(text: string, isCut: boolean): string {
  return text === '' && !isCut ? '{}' : text
}
