/** Freezes plain data: an object, its members and theirs. What is frozen already stays as it is. */
export function freezeData<Data>(data: Data): Data {
  if (typeof data !== 'object' || data === null || Object.isFrozen(data)) return data
  Object.freeze(data)
  if (Array.isArray(data)) for (const item of data) freezeData(item)
  else for (const name in data) freezeData(data[name])
  return data
}
