import { fieldNames } from '../../api/operations/field-names.ts'
import type { Operation } from '../../core/operation.ts'
import type { Path } from '../read/position.ts'
import type { Source } from '../read/source.ts'
import type { OperationFile } from '../read/types.ts'
import { didYouMean } from './did-you-mean.ts'
import type { Problem } from './problem.ts'

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
    return [`\`{${name}}\` means nothing${didYouMean(name, known) || '; it stands for no field of the API'}`]
  })
}
