/** Freezes an object and everything that can be reached from it by its own members, functions included. */
export function deepFreeze<T>(value: T): T {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || Object.isFrozen(value))
    return value
  Object.freeze(value)
  for (const name of Reflect.ownKeys(value)) {
    const member = Object.getOwnPropertyDescriptor(value, name)
    for (const each of [member?.value, member?.get, member?.set]) deepFreeze(each)
  }
  return value
}
