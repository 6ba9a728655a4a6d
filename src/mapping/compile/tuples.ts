import { any, arrow, type Code, fresh, type Generator, literal, type Node, Uncompilable } from './generator.ts'
import { bindings, inFrame } from './scope.ts'

/** The steps of a path from the first that binds a name on; `input` is what came before. */
export function tuplePath(generator: Generator, node: Node, index: number, input: string): Code {
  const steps = (node.steps as Node[]).slice(index)
  refuse(node, steps)
  const names: string[] = []
  const own = index === 0 && steps[0]?.type === 'variable'
  let code = `$.stream(${own ? `[${input}]` : input}, ${index === 0})`
  for (const step of steps) code = tupleStage(generator, step, names, tupleStep(generator, step, names, code))
  if (node.group) {
    const pairs = (node.group.lhs as [Node, Node][]).map(
      ([key, value]) => `[${tupleArrow(generator, names, key)}, ${tupleArrow(generator, names, value)}]`,
    )
    const text = `$.tupleGroup(${code}, [${pairs.join(', ')}], ${node.group.position ?? 0})`
    return any(text, { kind: 'object', present: true })
  }
  if (node.tuple) return any(code)
  return any(`$.tupleItems(${code}, ${node.keepSingletonArray === true || node.keepArray === true})`)
}

/** What the library does by way of how it marks its lists is left to it. */
function refuse(node: Node, steps: readonly Node[]): void {
  const sorts = steps.filter(({ type }) => type === 'sort')
  const last = steps.at(-1)?.type === 'sort'
  const odd = sorts.length > 1 || sorts.some(({ stages }) => stages) || (last && (node.group || node.tuple))
  if (odd || steps[0]?.type === 'sort') throw new Uncompilable('an ordering among the bindings @, # and %')
  if (bindings([steps, node.group]).length > 0) throw new Uncompilable('a variable among the bindings @, # and %')
  if (node.steps[0].consarray) throw new Uncompilable('an array constructor before the bindings @, # and %')
}

function tupleStep(generator: Generator, step: Node, names: string[], input: string): string {
  if (step.type === 'sort') {
    const terms = (step.terms as { expression: Node; descending: boolean }[]).map(
      ({ expression, descending }) => `[${tupleArrow(generator, names, expression)}, ${descending}]`,
    )
    return `$.tupleSort(${input}, $.tupleOrder([${terms.join(', ')}], ${step.position ?? 0}))`
  }
  const { stages, ...bare } = step
  const of = tupleArrow(generator, names, bare as Node)
  const bound = [
    ...(step.focus ? [`focus: ${literal(step.focus)}`] : []),
    ...(step.index ? [`index: ${literal(step.index)}`] : []),
    ...(step.ancestor ? [`ancestor: ${literal(step.ancestor.label)}`] : []),
  ]
  for (const name of boundNames(step)) if (!names.includes(name)) names.push(name)
  return `$.tupleStep(${input}, ${of}, ${bound.length > 0 ? `{ ${bound.join(', ')} }` : '{}'})`
}

function tupleStage(generator: Generator, step: Node, names: string[], input: string): string {
  let code = input
  for (const stage of (step.stages ?? []) as Node[]) {
    if (stage.type === 'index') {
      names.push(stage.value as string)
      code = `$.tupleIndex(${code}, ${literal(stage.value)})`
    } else if (stage.expr.type === 'number') code = `$.tupleAt(${code}, ${Math.floor(stage.expr.value)})`
    else code = `$.tupleFilter(${code}, ${tupleArrow(generator, names, stage.expr)}, $.boolean)`
  }
  return code
}

/** Names a step binds, and those that a nested path hands on. */
function boundNames(node: Node): string[] {
  const own = [node.focus, node.index, node.ancestor?.label].filter((name) => name !== undefined)
  if (!node.tuple) return own
  if (node.type === 'block') return [...own, ...boundNames(node.expressions.at(-1))]
  if (node.type !== 'path') return own
  const steps = node.steps as Node[]
  const stages = steps.flatMap((step) => (step.stages ?? []) as Node[]).filter(({ type }) => type === 'index')
  return [...own, ...steps.flatMap(boundNames), ...stages.map(({ value }) => value as string)]
}

/** A function of an item and its tuple, in which the names of the tuple are variables. */
function tupleArrow(generator: Generator, names: readonly string[], node: Node): string {
  const item = fresh(generator, 'item')
  const tuple = fresh(generator, 'tuple')
  return inFrame(generator, () => {
    for (const name of names) {
      const text = `${tuple}[${literal(name)}]`
      const known = {
        name: text,
        bound: true,
        asked: false,
        kind: 'any',
        plain: false,
        present: false,
        raw: true,
      } as const
      generator.frame.variables.set(name, { ...known })
    }
    return arrow(generator, `${item}, ${tuple}`, () => generator.value(node, item))
  })
}
