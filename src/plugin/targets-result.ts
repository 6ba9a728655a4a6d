import type { PluginTarget } from './contract.ts'
import { WrongResult } from './members.ts'

/** What a `targets` hook returned: some of those it was given, by their ids. Throws `WrongResult`. */
export function targetsResult<Target extends PluginTarget>(
  result: unknown,
  given: readonly Target[],
): readonly Target[] {
  if (!Array.isArray(result)) throw new WrongResult('the result is no list of targets')
  if (result.length === 0) throw new WrongResult('no target is left')
  const left = [...given]
  return result.map((one: Partial<PluginTarget> | null) => {
    const place = left.findIndex(({ id }) => id === one?.id)
    const [target] = place < 0 ? [] : left.splice(place, 1)
    if (!target) throw new WrongResult(`'${one?.id}' is none of the targets that are left`)
    return target
  })
}
