import type { Json } from '../../src/core/json.ts'
import type { FamilyRules, Limits, NumberLimit, TextLimit } from '../../src/manifest/limits.ts'
import {
  type Ask,
  type AskedTool,
  called,
  longestText,
  numbersIn,
  type Probe,
  type Seen,
  textInside,
  textsIn,
} from './limit-asks.ts'
import { historyProbes } from './limit-history-probes.ts'
import { mediaProbes } from './limit-media-probes.ts'
import { closed, isStrict, schemaProbes } from './limit-schema-probes.ts'

/** All probes for the declared limits, requirements on conversations and efforts of a family. */
export function probesOf(rules: FamilyRules, traits: { [name: string]: Json }): Probe[] {
  const { limits, editedHistory: history } = rules
  return [
    ...textProbes(limits),
    ...numberProbes(limits),
    ...listProbes(limits),
    ...mediaProbes(limits),
    ...choiceProbes(limits, traits),
    ...schemaProbes('tool_schema', limits.tool_schema),
    ...schemaProbes('answer_schema', limits.answer_schema),
    ...historyProbes(history),
    ...effortProbes(traits),
  ]
}

/** Texts just outside: too long, or of other characters. */
function textsOutside({ pattern, max }: TextLimit): [limit: 'max' | 'pattern', text: string][] {
  const other = ['b', 'a b|c', 'bücher'].find((text) => pattern && !pattern.test(text))
  return [
    ...(max !== undefined && max <= longestText ? [['max', `b${'a'.repeat(max)}`] as ['max', string]] : []),
    ...(other === undefined ? [] : [['pattern', other] as ['pattern', string]]),
  ]
}

function textProbes(limits: Limits): Probe[] {
  const asks: { [name: string]: (text: string) => Ask } = {
    tool_name: (name) => ({ tools: [{ ...called, name }] }),
    tool_description: (description) => ({ tools: [{ ...called, description }] }),
    schema_name: (name) => ({ schema: { name, schema: closed } }),
    user: (user) => ({ user }),
    safety_identifier: (safety_identifier) => ({ safety_identifier }),
    cache_key: (cache_key) => ({ cache_key }),
  }
  return Object.entries(asks).flatMap(([limit, ask]): Probe[] => {
    const declared = limits[limit as 'user']
    if (!declared) return []
    const inside = textInside(declared)
    const has = (text: string) => (seen: Seen) => textsIn(seen.body).includes(text)
    return textsOutside(declared).map(([kind, outside]) => ({
      limit: `${limit}.${kind}`,
      inside: ask(inside),
      // A hint for the cache need not be reported.
      unchanged: limit === 'cache_key' ? () => true : has(inside),
      outside: ask(outside),
      within: (seen) => !has(outside)(seen),
      ...(limit === 'tool_name' && { clientName: outside }),
    }))
  })
}

const names = [
  'temperature',
  'top_p',
  'top_k',
  'frequency_penalty',
  'presence_penalty',
  'seed',
  'n',
  'max_output_tokens',
  'top_logprobs',
] as const

function numberProbes(limits: Limits): Probe[] {
  const plain = names.flatMap((name) => sidesOf(name, limits[name], (number) => ({ numbers: { [name]: number } })))
  const budget = sidesOf('reasoning_budget', limits.reasoning_budget, (number) => ({ budget: number }))
  return [...plain, ...budget].map((probe) =>
    probe.limit.startsWith('top_logprobs') ? { ...probe, unchanged: () => true } : probe,
  )
}

function sidesOf(limit: string, declared: NumberLimit | undefined, ask: (number: number) => Ask): Probe[] {
  if (!declared) return []
  const step =
    Number.isInteger(declared.min ?? 0) &&
    ['top_k', 'seed', 'n', 'max_output_tokens', 'reasoning_budget', 'top_logprobs'].includes(limit)
      ? 1
      : 0.25
  const sides = [
    ['max', declared.max, (declared.max ?? 0) + step],
    ['min', declared.min, (declared.min ?? 0) - step],
  ] as const
  return sides.flatMap(([side, inside, outside]): Probe[] => {
    if (inside === undefined || Math.abs(inside) > 2 ** 40) return []
    // The default need not be sent.
    const near = step < 1 && inside === 1 ? 0.99 : inside
    const has = (number: number) => (seen: Seen) => numbersIn(seen.body).includes(number)
    // Budgets become efforts, and a single choice need not be asked for.
    const isSame = limit === 'reasoning_budget' || limit === 'n' ? () => true : has(near)
    const isMeant = limit !== 'max_output_tokens' || outside > 0
    return [
      {
        limit: `${limit}.${side}`,
        inside: ask(near),
        unchanged: isSame,
        ...(isMeant && { outside: ask(outside), within: (seen) => !has(outside)(seen) }),
      },
    ]
  })
}

function listProbes({ stop, metadata, tools, strict_tools }: Limits): Probe[] {
  const probes: Probe[] = []
  const letters = (count: number) => Array.from({ length: count }, (_, index) => `stop_${index}`)
  const has =
    (...texts: string[]) =>
    (seen: Seen) =>
      texts.every((text) => textsIn(seen.body).includes(text))
  if (stop?.count) {
    const [inside, outside] = [letters(stop.count), letters(stop.count + 1)]
    const last = outside.at(-1) ?? ''
    probes.push({
      limit: 'stop.count',
      inside: { stop: inside },
      unchanged: has(...inside),
      outside: { stop: outside },
      within: (seen) => !has(last)(seen),
    })
  }
  if (metadata?.count) {
    const entries = (count: number) => Object.fromEntries(letters(count).map((name) => [name, `v${name}`]))
    const last = `vstop_${metadata.count}`
    probes.push({
      limit: 'metadata.count',
      inside: { metadata: entries(metadata.count) },
      // Metadata that a provider does not take is the router's own, and need not be reported.
      unchanged: () => true,
      outside: { metadata: entries(metadata.count + 1) },
      within: (seen) => !has(last)(seen),
    })
  }
  return [...probes, ...entryProbes(metadata), ...toolCountProbes(tools, strict_tools)]
}

/** Probes for the lengths of names and values of metadata. */
function entryProbes({ key, value }: NonNullable<Limits['metadata']> = {}): Probe[] {
  const probe = (limit: string, entry: (length: number) => [string, string], max: number): Probe => {
    const long = entry(max + 1)
    return {
      limit,
      inside: { metadata: Object.fromEntries([entry(max)]) },
      unchanged: () => true,
      outside: { metadata: Object.fromEntries([long]) },
      within: (seen) => !long.some((text) => text.length > max && JSON.stringify(seen.body).includes(text)),
    }
  }
  return [
    ...(key === undefined ? [] : [probe('metadata.key', (length) => ['k'.repeat(length), 'v'], key)]),
    ...(value === undefined ? [] : [probe('metadata.value', (length) => ['k', 'v'.repeat(length)], value)]),
  ]
}

function toolCountProbes(tools: Limits['tools'], strictTools: Limits['strict_tools']): Probe[] {
  const probes: Probe[] = []
  const manyTools = (count: number, strict?: true): Ask => ({
    tools: Array.from({ length: count }, (_, index) => ({
      name: `f${index}`,
      parameters: closed,
      ...(strict && { strict }),
    })),
  })
  if (tools)
    probes.push({
      limit: 'tools.count',
      inside: manyTools(tools.count),
      unchanged: (seen) => seen.arrived.tools.length === tools.count,
      outside: manyTools(tools.count + 1),
      refused: true,
    })
  if (strictTools)
    probes.push({
      limit: 'strict_tools.count',
      inside: manyTools(strictTools.count, true),
      unchanged: (seen) => seen.arrived.tools.length === strictTools.count,
      outside: manyTools(strictTools.count + 1, true),
      within: (seen) => !isStrict(seen.body),
    })
  return probes
}

function choiceProbes({ tool_choice, tool_choice_thinking }: Limits, { efforts }: { [name: string]: Json }): Probe[] {
  const levels = Array.isArray(efforts) ? efforts.filter((effort) => effort !== 'none' && effort !== 'default') : []
  const effort = String(levels[0] ?? 'high')
  const tools: AskedTool[] = [called, { ...called, name: 'g' }]
  const forms = { none: 'none', required: 'required', named: { name: 'f' } } as const
  const probe = (limit: string, taken: readonly string[], more: Ask): Probe[] => {
    const ask = (form: keyof typeof forms): Ask => ({ ...more, tools, choice: forms[form] })
    const all = Object.keys(forms) as (keyof typeof forms)[]
    const outside = all.find((form) => !taken.includes(form) && form !== 'none')
    return [
      ...all
        .filter((form) => taken.includes(form))
        .map((form): Probe => ({ limit, inside: ask(form), unchanged: () => true })),
      ...(outside
        ? [
            {
              limit,
              inside: { ...more, tools },
              unchanged: () => true,
              outside: ask(outside),
              within: (seen: Seen) => !seen.arrived.mustCall,
            },
          ]
        : []),
    ]
  }
  return [
    ...(tool_choice ? probe('tool_choice', tool_choice, {}) : []),
    ...(tool_choice_thinking ? probe('tool_choice_thinking', tool_choice_thinking, { effort }) : []),
  ]
}

function effortProbes({ efforts, reasoning }: { [name: string]: Json }): Probe[] {
  if (!Array.isArray(efforts) || reasoning === false) return []
  const outside = ['xhigh', 'high', 'max', 'medium', 'low'].find((effort) => !efforts.includes(effort))
  return efforts
    .filter((effort) => typeof effort === 'string' && effort !== 'default')
    .map((effort, index) => ({
      limit: 'efforts',
      inside: { effort: String(effort) },
      unchanged: () => true,
      ...(index === 0 &&
        outside && { outside: { effort: outside }, within: (seen: Seen) => !textsIn(seen.body).includes(outside) }),
    }))
}
