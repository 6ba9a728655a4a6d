import { fieldNames } from '../../api/operations/field-names.ts'
import type { Operation } from '../../core/operation.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { membersOf, type Node } from '../../mapping/mentions.ts'
import { unsupportedNameProblem } from '../fields.ts'
import type { Path } from '../read/position.ts'
import type { Source } from '../read/source.ts'
import type { OperationFile } from '../read/types.ts'
import { oldNameMessage } from '../renamed-keys.ts'
import { didYouMean } from './did-you-mean.ts'
import type { Problem } from './problem.ts'

/** Names in a request mapping that mean nothing: fields in `dropped`, and members of `target`. */
export function nameProblems(mapping: Mapping, source: Source, path: Path): Problem[] {
  if (source.sound !== undefined) return []
  const { tree } = mapping
  const expressions = (tree as Node).type === 'block' ? ((tree as Node).expressions as Node[]) : [tree as Node]
  const sections = membersOf(expressions.at(-1) as Node)
  const dropped = sections.get('dropped')
  const losses = (dropped ? textsIn(dropped) : []).flatMap((name) => unsupportedNameProblem(name, []) ?? [])
  return [
    ...losses.map((message) => source.problem([...path, 'dropped'], message)),
    ...targetProblems(mapping, source, path),
  ]
}

/** Members of `target`, or of the variable `$target` in patches, that do not exist. */
export function targetProblems(mapping: Mapping, source: Source, path: Path): Problem[] {
  if (source.sound !== undefined) return []
  return [...targetMembers(mapping.tree)].flatMap((name): Problem[] => {
    if (knownMembers.includes(name)) return []
    const to = renamedMembers.get(name)
    if (to === undefined) {
      return [source.problem(path, `\`target\` has no \`${name}\`${didYouMean(name, knownMembers)}`, 'name')]
    }
    const message = oldNameMessage({ from: `target.${name}`, to: `target.${to}`, isDouble: false })
    return [{ ...source.problem(path, message, 'name'), severity: 'warning' }]
  })
}

const knownMembers = ['signer', 'max_output_tokens', 'context_window', 'traits']
/** Members that mappings may still read under their former names. */
const renamedMembers: ReadonlyMap<string, string> = new Map([['maker', 'signer']])

/** The texts that an expression can give: itself, items of lists, branches of conditions. */
function textsIn(node: Node): string[] {
  if (node.type === 'string') return [node.value as string]
  if (node.type === 'block') return textsIn((node.expressions as Node[]).at(-1) ?? {})
  if (node.type === 'unary' && node.value === '[') return (node.expressions as Node[]).flatMap(textsIn)
  if (node.type !== 'condition') return []
  return [node.then, node.else].flatMap((branch) => (branch ? textsIn(branch as Node) : []))
}

/** The names that follow `target` at the beginning of a path. */
function targetMembers(tree: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(tree)) for (const item of tree) targetMembers(item, found)
  else if (tree !== null && typeof tree === 'object') {
    const { type, steps = [] } = tree as { type?: string; steps?: Node[] }
    const own = steps[0]?.type === 'variable' && steps[0].value === '$' ? steps.slice(1) : steps
    const [first, second] = own
    const isTarget = first?.value === 'target' && (first.type === 'name' || first.type === 'variable')
    if (type === 'path' && isTarget && second?.type === 'name') {
      found.add(second.value as string)
    }
    for (const member of Object.values(tree)) targetMembers(member, found)
  }
  return found
}

/** Names in an endpoint for an operation that mean nothing: its unsupported fields, the field of its batch, the places in its paths. */
export function operationNameProblems(source: Source, operation: Operation, file: OperationFile): Problem[] {
  if (source.sound !== undefined) return []
  const known = fieldNames[operation]
  const places = ['model', '+model', ...known]
  const { unsupported = [], batch, path, stream, job = {} } = file
  const named: (readonly [Path, string])[] = unsupported.map((loss, index) => [
    ['unsupported', index],
    typeof loss === 'string' ? loss : loss.field,
  ])
  if (batch) named.push([['batch', 'field'], batch.field])
  const at = (path: Path) => ['endpoints', operation, ...path]
  return [
    ...named.flatMap(([path, name]) => {
      const message = `the API has no field \`${name}\`${didYouMean(name, known)}`
      return known.includes(name) ? [] : [source.problem(at(path), message)]
    }),
    ...unknownPlaces(path, places).map((message) => source.problem(at(['path']), message)),
    ...unknownPlaces(stream?.path, places).map((message) => source.problem(at(['stream', 'path']), message)),
    ...(['poll', 'cancel'] as const).flatMap((name) =>
      unknownPlaces(job[name], ['id', 'model', '+model']).map((message) => source.problem(at(['job', name]), message)),
    ),
  ]
}

function unknownPlaces(path: string | undefined, known: readonly string[]): string[] {
  const places = [...(path ?? '').matchAll(/\{([^}]*)\}/g)].map(([, name = '']) => name)
  return places.flatMap((name) => {
    if (known.includes(name)) return []
    return [`\`{${name}}\` is not a placeholder${didYouMean(name, known) || '; the API has no such field'}`]
  })
}
