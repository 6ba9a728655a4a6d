/** Freezes plain data: an object, its members and theirs. What is frozen already stays as it is. */
export function freezeData<Data>(data: Data): Data {
  if (typeof data !== 'object' || data === null || Object.isFrozen(data)) return data
  Object.freeze(data)
  for (const name in data) {
    const member = data[name]
    if (typeof member === 'object' && member !== null) freezeData(member)
  }
  return data
}
