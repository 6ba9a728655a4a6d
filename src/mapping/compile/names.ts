import { type Code, codeOf, constant, type Generator, literal, type Node } from './generator.ts'

/** A call of a preamble function that reads this path of names from a value. */
export function accessor(
  generator: Generator,
  path: readonly string[],
  input: string,
  ends: boolean,
  keep: boolean,
): Code {
  const meaning = `${ends ? 'value' : 'items'}${keep ? '[]' : ''} ${JSON.stringify(path)}`
  const name = constant(generator, meaning, path.join('_'), () =>
    accessorText(path, { ends, keep, wrapsLists: generator.wrapsLists }),
  )
  return codeOf(`${name}(${input})`)
}

type Access = { ends: boolean; keep: boolean; wrapsLists: boolean }

function accessorText(path: readonly string[], { ends, keep, wrapsLists }: Access): string {
  const rest = (value: string, index: number): string =>
    `$.readNames(${value}, ${literal(path)}, ${index}, ${ends}, ${keep})`
  const lines = path.map((name, index) => {
    const from = index === 0 ? 'from' : `step${index}`
    return `  if (!$.isRecord(${from})) return ${rest(from, index)}\n  const step${index + 1} = ${read(from, name)}`
  })
  const last = `step${path.length}`
  const list = ends ? `$.pathResult(${last}, ${keep})` : `$.items(${last})`
  const result = keep ? list : !ends && !wrapsLists ? last : `$.isArray(${last}) ? ${list} : ${last}`
  return `(from) => {\n${lines.join('\n')}\n  return ${result}\n}`
}

/** Reads an own member. Plain JSON inherits the names of Object.prototype only, so only those need a check. */
function read(from: string, name: string): string {
  if (name in Object.prototype) return `$.ownMember(${from}, ${literal(name)})`
  return /^[A-Za-z_]\w*$/.test(name) ? `${from}.${name}` : `${from}[${literal(name)}]`
}

/** A single name read from one item. */
export function name(generator: Generator, node: Node, item: string): Code {
  const text = node.value as string
  const keep = node.keepArray === true
  const access = constant(generator, `member ${literal(text)} ${keep}`, text, () => memberText(text, keep))
  return codeOf(`${access}(${item})`)
}

function memberText(name: string, keep: boolean): string {
  const lists = `$.member(from, ${literal(name)}, ${keep})`
  const value = read('from', name)
  return keep ? `(from) => ${lists}` : `(from) => $.isRecord(from) ? $.collapse(${value}) : ${lists}`
}
