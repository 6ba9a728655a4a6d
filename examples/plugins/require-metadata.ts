import { definePlugin, Refusal } from 'inference-router/plugin'

type Options = { names: readonly string[]; warn_usd: number }

/** Requires metadata on every call, so that each dollar can be attributed, and logs calls that were expensive. */
export default definePlugin<Options>({
  description: 'Refuses calls without the required metadata, and logs expensive ones',
  options: {
    properties: {
      names: { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 },
      warn_usd: { type: 'number', exclusiveMinimum: 0, default: 1 },
    },
    required: ['names'],
  },
  // A plugin that enforces a rule must not let calls pass when it fails.
  onError: 'closed',
  setup({ names, warn_usd }, { log }) {
    return {
      request(_request, { metadata = {} }) {
        const missing = names.filter((name) => typeof metadata[name] !== 'string' || metadata[name] === '')
        if (missing.length > 0)
          throw new Refusal(400, `Set metadata.${missing.join(' and metadata.')}.`, { param: 'metadata' })
        return { headers: { 'x-attributed-to': names.map((name) => metadata[name]).join('/') } }
      },
      // Runs in the background when the ledger row is written: no client waits for it.
      record({ cost, model }, { metadata = {} }) {
        const usd = cost.nanoUsd / 1e9
        if (usd <= warn_usd) return
        log.warn(
          { ...Object.fromEntries(names.map((name) => [name, metadata[name]])), model, usd },
          'an expensive call',
        )
      },
    }
  },
})
