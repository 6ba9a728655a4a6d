import {
  type Code,
  codeOf,
  constant,
  type Generator,
  itemFunction,
  literal,
  type Node,
  statement,
  stored,
  Uncompilable,
  uniqueName,
} from './generator.ts'

/** Emits a path: each step takes the items of the one before. */
export function path(generator: Generator, node: Node, context: string): Code {
  const steps = node.steps as Node[]
  if (steps.some(({ tuple }) => tuple)) throw new Uncompilable('a binding by @, # or %')
  if (steps.some(({ type }) => type === 'sort')) throw new Uncompilable('ordering by ^(…)')
  const keep = node.keepSingletonArray === true || node.keepArray === true
  let code = firstStep(generator, steps, context, keep)
  const { list } = code
  while (code.taken < steps.length) code = nextSteps(generator, steps, code, keep)
  if (list === undefined) return code
  // The library stops at an array constructor that is empty, or whose predicates removed all items.
  const left = keep ? `$.pathResult(${list}, true)` : list
  return codeOf(`(${list} === undefined || ${list}.length === 0 ? ${left} : ${code.text})`)
}

/** Code for the first `taken` steps; `list` is the variable that holds a leading array constructor. */
type Part = Code & { taken: number; list?: string }

function firstStep(generator: Generator, steps: readonly Node[], context: string, keep: boolean): Part {
  const first = steps[0] as Node
  if (first.type === 'name') return namesOrStep(generator, steps, 0, context, keep)
  if (first.consarray) {
    const list = uniqueName(generator, 'context')
    statement(generator, `const ${list} = $.asList(${context})`)
    const value = stored(generator, generator.value(first, list), 'list')
    const elements = first.predicate ? `$.elements(${value.text})` : value.text
    return { ...value, text: steps.length > 1 ? elements : value.text, taken: 1, list: value.text }
  }
  if (first.type !== 'variable') return step(generator, steps, 0, context, keep)
  const value = stepValue(generator, first, context)
  if (steps.length === 1) return { ...codeOf(`$.pathResult(${value.text}, ${keep})`), taken: 1 }
  const isOneItem = !generator.wrapsLists || value.kind === 'function'
  return { ...value, text: isOneItem ? value.text : `$.items(${value.text})`, taken: 1 }
}

function nextSteps(generator: Generator, steps: readonly Node[], { text, taken }: Part, keep: boolean): Part {
  if (steps[taken]?.type === 'name') return namesOrStep(generator, steps, taken, text, keep)
  return step(generator, steps, taken, text, keep)
}

/** A step that is not just a name, as a function of an item. */
function step(generator: Generator, steps: readonly Node[], index: number, input: string, keep: boolean): Part {
  const item = uniqueName(generator, 'item')
  const of = itemFunction(generator, item, () => stepValue(generator, steps[index] as Node, item))
  const taken = index + 1
  if (taken < steps.length) return { ...codeOf(`$.${index === 0 ? 'firstStep' : 'innerStep'}(${input}, ${of})`), taken }
  return { ...codeOf(`$.${index === 0 ? 'onlyStep' : 'lastStep'}(${input}, ${of}, ${keep})`), taken }
}

/** The value of a step for one item, with predicates applied. */
function stepValue(generator: Generator, node: Node, item: string): Code {
  const { stages, ...bare } = node
  const value = node.type === 'name' ? name(generator, node, item) : generator.value(bare as Node, item)
  return filtered(generator, value, stages)
}

/** Applies predicates to a value. The result may be an uncollapsed sequence, and is one if it has to stay a list. */
export function filtered(generator: Generator, value: Code, stages: readonly Node[] | undefined, isList = false): Code {
  let code = value
  for (const [index, { expr }] of (stages ?? []).entries()) {
    // The next predicate takes no items for nothing, but a missing value for one item.
    const bare = !isList && index === (stages ?? []).length - 1
    if (expr.type === 'number') {
      code = codeOf(`$.${bare ? 'item' : 'at'}(${code.text}, ${Math.floor(expr.value)})`)
    } else {
      const item = uniqueName(generator, 'item')
      const test = itemFunction(generator, item, () => generator.value(expr, item))
      code = codeOf(`$.${bare ? 'select' : 'filter'}(${code.text}, ${test})`)
    }
  }
  return code
}

/** Combines a run of consecutive names into one accessor. */
function namesOrStep(generator: Generator, steps: readonly Node[], index: number, input: string, keep: boolean): Part {
  let end = index
  while (end < steps.length && isPlainName(steps[end] as Node)) end++
  if (end === index) return step(generator, steps, index, input, keep)
  const path = steps.slice(index, end).map((step) => step.value as string)
  const final = end === steps.length
  return { ...accessor(generator, path, input, final, final && keep), taken: end }
}

/** A name with `[]` keeps the list that it makes of each item, which matters where an item is a list itself. */
function isPlainName(node: Node): boolean {
  return node.type === 'name' && !node.stages && node.keepArray !== true
}

/** A call of a preamble function that reads this path of names from a value. */
function accessor(generator: Generator, path: readonly string[], input: string, ends: boolean, keep: boolean): Code {
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
