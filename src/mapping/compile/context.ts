import { knownFunction, standsAlone } from './calls.ts'
import type { Generator, Node } from './generator.ts'
import { builtIn } from './scope.ts'
import { calledVariable } from './uses.ts'

/** Whether the code of an expression may mention its context. */
export function readsContext(generator: Generator, node: Node): boolean {
  const reads = (part: Node | undefined): boolean => part !== undefined && readsContext(generator, part)
  switch (node.type) {
    case 'string':
    case 'number':
    case 'value':
    case 'regex':
    case 'transform':
      return false
    case 'variable':
      return node.value === ''
    case 'path':
      return reads(node.steps[0])
    case 'lambda':
      return reads(node.body)
    case 'bind':
      return reads(node.rhs)
    case 'binary':
      return reads(node.lhs) || reads(node.rhs)
    case 'apply':
      // What is called gets one more argument.
      return reads(node.lhs) || (node.rhs.type === 'function' ? callReads(generator, node.rhs, 1) : reads(node.rhs))
    case 'condition':
      return reads(node.condition) || reads(node.then) || reads(node.else)
    case 'unary':
      return constructorReads(node, reads)
    case 'function':
      return callReads(generator, node)
    default:
      return true
  }
}

function constructorReads({ value, expression, expressions, lhs }: Node, reads: (node: Node) => boolean): boolean {
  if (value === '[') return (expressions as Node[]).some(reads)
  // An object is one per group of items of its context, if its keys are computed.
  if (value === '{') return (lhs as [Node, Node][]).some(([key, each]) => key.type !== 'string' || reads(each))
  return reads(expression)
}

/** Whether a call or its arguments do: a function may take the context for a missing argument. */
function callReads(generator: Generator, node: Node, more = 0): boolean {
  if ((node.arguments as Node[]).some((each) => readsContext(generator, each))) return true
  const name = calledVariable(node)
  const count = node.arguments.length + more
  if (name === undefined) return true
  if (builtIn(generator, name)) return !standsAlone(generator.library, name, count)
  return knownFunction(generator, node, count) === undefined
}
