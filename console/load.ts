import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { returns } from './reachable.ts'

/** State of data that is being loaded. `data` stays while it is loaded anew. */
export type Loaded<Data> = { data: Data | undefined; error: Error | undefined; isLoading: boolean; reload(): void }

/**
 * Loads when the page is shown, and again when one of `dependsOn` changes or the router comes back; a request that is no longer needed is
 * aborted.
 */
export function useLoad<Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  dependsOn: readonly unknown[] = [],
): Loaded<Data> {
  const data = useSignal<Data | undefined>(undefined)
  const error = useSignal<Error | undefined>(undefined)
  const isLoading = useSignal(true)
  const round = useSignal(0)
  useEffect(() => {
    const aborted = new AbortController()
    isLoading.value = true
    load(aborted.signal).then(
      (loaded) => {
        if (aborted.signal.aborted) return
        data.value = loaded
        error.value = undefined
        isLoading.value = false
      },
      (thrown) => {
        if (aborted.signal.aborted) return
        error.value = thrown
        isLoading.value = false
      },
    )
    return () => aborted.abort()
  }, [round.value, returns.value, ...dependsOn])
  return { data: data.value, error: error.value, isLoading: isLoading.value, reload: () => void round.value++ }
}
