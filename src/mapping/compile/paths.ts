import { any, arrow, type Code, fresh, type Generator, held, type Node, statement, Uncompilable } from './generator.ts'
import { accessor, name } from './names.ts'

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
  // The library leaves a path whose first list is empty, or has lost all its items, with what is there.
  const left = keep ? `$.one(${list}, true)` : list
  return any(`(${list} === undefined || ${list}.length === 0 ? ${left} : ${code.text})`)
}

/** The code of the first steps: how many they are, and the name of the list that a path may begin with. */
type Part = Code & { taken: number; list?: string }

function firstStep(generator: Generator, steps: readonly Node[], context: string, keep: boolean): Part {
  const first = steps[0] as Node
  if (first.type === 'name') return namesOrStep(generator, steps, 0, context, keep)
  if (first.consarray) {
    const list = fresh(generator, 'context')
    statement(generator, `const ${list} = $.asList(${context})`)
    const value = held(generator, generator.value(first, list), 'list')
    const walked = first.predicate ? `$.walked(${value.text})` : value.text
    return { ...value, text: steps.length > 1 ? walked : value.text, taken: 1, list: value.text }
  }
  if (first.type !== 'variable') return step(generator, steps, 0, context, keep)
  const value = stepValue(generator, first, context)
  if (steps.length === 1) return { ...any(`$.one(${value.text}, ${keep})`), taken: 1 }
  return { ...value, text: value.kind === 'function' ? value.text : `$.items(${value.text})`, taken: 1 }
}

function nextSteps(generator: Generator, steps: readonly Node[], { text, taken }: Part, keep: boolean): Part {
  if (steps[taken]?.type === 'name') return namesOrStep(generator, steps, taken, text, keep)
  return step(generator, steps, taken, text, keep)
}

/** One step that is not a plain name, as a function of an item. */
function step(generator: Generator, steps: readonly Node[], index: number, input: string, keep: boolean): Part {
  const item = fresh(generator, 'item')
  const of = arrow(generator, item, () => stepValue(generator, steps[index] as Node, item))
  const taken = index + 1
  if (taken < steps.length) return { ...any(`$.${index === 0 ? 'start' : 'each'}(${input}, ${of})`), taken }
  return { ...any(`$.${index === 0 ? 'only' : 'last'}(${input}, ${of}, ${keep})`), taken }
}

/** The value of a step for one item, filtered. */
function stepValue(generator: Generator, node: Node, item: string): Code {
  const { stages, ...bare } = node
  const value = node.type === 'name' ? name(generator, node, item) : generator.value(bare as Node, item)
  return filtered(generator, value, stages)
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

/** As many plain names as follow each other, by one accessor. */
function namesOrStep(generator: Generator, steps: readonly Node[], index: number, input: string, keep: boolean): Part {
  let end = index
  while (end < steps.length && isPlainName(steps[end] as Node)) end++
  if (end === index) return step(generator, steps, index, input, keep)
  const path = steps.slice(index, end).map((step) => step.value as string)
  const final = end === steps.length
  return { ...accessor(generator, path, input, final, final && keep), taken: end }
}

function isPlainName(node: Node): boolean {
  return node.type === 'name' && !node.stages
}
