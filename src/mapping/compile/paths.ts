import { groupBy } from './constructors.ts'
import { any, arrow, type Code, fresh, type Generator, held, type Node } from './generator.ts'
import { accessor, name } from './names.ts'
import { tuplePath } from './tuples.ts'

/** Emits a path: each step takes the items of the one before. */
export function path(generator: Generator, node: Node, context: string): Code {
  const steps = node.steps as Node[]
  const keep = node.keepSingletonArray === true || node.keepArray === true
  const grouped = node.group !== undefined
  let index = 0
  // From the first step that binds a name on, items carry what was bound.
  const bindsAt = steps.findIndex((step) => step.tuple)
  if (bindsAt === 0) return tuplePath(generator, node, 0, context)
  let code = firstStep(generator, steps, context, keep, grouped)
  index = code.taken
  const { list } = code
  while (index < (bindsAt === -1 ? steps.length : bindsAt)) {
    code = nextSteps(generator, steps, index, code, keep, grouped)
    index = code.taken
  }
  if (bindsAt !== -1) return tuplePath(generator, node, index, code.text)
  // The library leaves a path whose first list is empty, or has lost all its items, with what is there.
  const ends = `${list} === undefined || ${list}.length === 0`
  const left = keep ? `$.one(${list}, true)` : list
  if (!grouped) return list === undefined ? code : any(`(${ends} ? ${left} : ${code.text})`)
  const items = code.taken === 0 ? context : code.text
  return any(groupBy(generator, node.group.lhs, items, node.group.position ?? 0), { kind: 'object', present: true })
}

type Part = Code & { taken: number; list?: string }

function firstStep(
  generator: Generator,
  steps: readonly Node[],
  context: string,
  keep: boolean,
  grouped: boolean,
): Part {
  const first = steps[0] as Node
  if (first.type === 'name') return namesOrStep(generator, steps, 0, any(context, { simple: true }), keep, grouped)
  if (first.consarray) {
    const list = fresh(generator, 'context')
    generator.lines.push(`const ${list} = $.asList(${context})`)
    const value = held(generator, generator.value(first, list), 'list')
    const walked = first.predicate ? `$.walked(${value.text})` : value.text
    return { ...value, text: steps.length > 1 ? walked : value.text, taken: 1, list: value.text }
  }
  const final = steps.length === 1
  if (first.type === 'variable') {
    const value = stepValue(generator, first, context)
    if (!final) return { ...value, text: value.kind === 'function' ? value.text : `$.items(${value.text})`, taken: 1 }
    if (grouped) return { ...any(`$.ungrouped([0], () => ${value.text}, true)`), taken: 1 }
    return { ...any(`$.one(${value.text}, ${keep})`, { plain: value.plain }), taken: 1 }
  }
  return step(generator, first, context, 'first', final, keep, grouped, 1)
}

function nextSteps(
  g: Generator,
  steps: readonly Node[],
  index: number,
  input: Code,
  keep: boolean,
  grouped: boolean,
): Part {
  const next = steps[index] as Node
  const final = index === steps.length - 1
  if (next.type === 'sort') return sortStep(g, next, input, index + 1, final, keep, grouped)
  if (next.type === 'name') return namesOrStep(g, steps, index, input, keep, grouped)
  return step(g, next, input.text, 'next', final, keep, grouped, index + 1)
}

/** One step that is not a plain name, as a function of an item. */
function step(
  generator: Generator,
  node: Node,
  input: string,
  place: 'first' | 'next',
  final: boolean,
  keep: boolean,
  grouped: boolean,
  taken: number,
): Part {
  const item = fresh(generator, 'item')
  const of = arrow(generator, item, () => stepValue(generator, node, item))
  if (final && grouped) return { ...any(`$.ungrouped(${input}, ${of}, ${place === 'first'})`), taken }
  if (!final) return { ...any(`$.${place === 'first' ? 'start' : 'each'}(${input}, ${of})`), taken }
  return { ...any(`$.${place === 'first' ? 'only' : 'last'}(${input}, ${of}, ${keep})`), taken }
}

/** The value of a step for one item, filtered. */
function stepValue(generator: Generator, node: Node, item: string): Code {
  if (node.type !== 'name') {
    const { stages, ...bare } = node
    return filtered(generator, generator.value(bare as Node, item), stages)
  }
  return filtered(generator, name(generator, node, item), node.stages)
}

/** Predicates on a value, one after the other: the result is a list that is not collapsed yet. */
export function filtered(generator: Generator, value: Code, stages: readonly Node[] | undefined): Code {
  let code = value
  for (const { expr } of stages ?? []) {
    if (expr.type === 'number') code = any(`$.at(${code.text}, ${Math.floor(expr.value)})`)
    else {
      const item = fresh(generator, 'item')
      const test = arrow(generator, item, () => generator.value(expr, item))
      code = any(`$.filter(${code.text}, ${test}, $.boolean)`)
    }
  }
  return code
}

function sortStep(
  g: Generator,
  node: Node,
  input: Code,
  taken: number,
  final: boolean,
  keep: boolean,
  grouped: boolean,
): Part {
  const terms = (node.terms as { expression: Node; descending: boolean }[]).map(({ expression, descending }) => {
    const item = fresh(g, 'item')
    return `[${arrow(g, item, () => g.value(expression, item))}, ${descending}]`
  })
  let code = any(`$.orderBy(${input.text}, [${terms.join(', ')}], ${node.position ?? 0})`)
  if (node.stages) {
    code = any(`$.items(${filtered(g, any(`$.listed(${code.text})`), node.stages).text})`)
  }
  if (!final) return { ...code, taken }
  if (grouped) return { ...any(`$.listed(${code.text})`), taken }
  return { ...any(`$.ordered(${code.text}, ${keep})`), taken }
}

/** As many plain names as follow each other, by one accessor. */
function namesOrStep(
  g: Generator,
  steps: readonly Node[],
  index: number,
  input: Code,
  keep: boolean,
  grouped: boolean,
): Part {
  let end = index
  while (end < steps.length && isPlainName(steps[end] as Node, grouped && end === steps.length - 1)) end++
  const place = index === 0 ? 'first' : 'next'
  const final = end === steps.length
  if (end === index) {
    return step(g, steps[index] as Node, input.text, place, index === steps.length - 1, keep, grouped, index + 1)
  }
  const path = steps.slice(index, end).map((step) => step.value as string)
  return { ...accessor(g, path, input.text, final, final && keep), taken: end }
}

function isPlainName(node: Node, groupedLast: boolean): boolean {
  return node.type === 'name' && !node.stages && !node.tuple && !groupedLast
}
