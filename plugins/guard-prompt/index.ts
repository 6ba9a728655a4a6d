import { definePlugin, Refusal } from 'inference-router/plugin'
import { type Denied, denier } from '../lib/denied.ts'
import { Judge, type JudgeOptions, judgeSchema } from '../lib/judge.ts'
import { paramOf } from '../lib/texts.ts'
import { injectionPhrases, usualQuestion } from './phrases.ts'
import { type Origin, origins, textsOf, unreadOf } from './texts.ts'

type Options = {
  deny: Denied[]
  allow: string[]
  injection_phrases: boolean
  look_at: Origin[]
  unreadable: 'pass' | 'refuse'
  message: string
  judge?: JudgeOptions
}

const pattern = { type: 'string', minLength: 1, maxLength: 1000 }

export default definePlugin<Options>({
  description: 'Refuses prompts that match patterns, or that a model judges to be attacks',
  // A judge that does not answer lets nothing pass.
  onError: 'closed',
  guards: true,
  // Longer than the longest time of a judge: it is the judge that fails then.
  timeoutMs: 65_000,
  options: {
    properties: {
      deny: {
        type: 'array',
        default: [],
        items: {
          type: 'object',
          additionalProperties: false,
          required: ['pattern'],
          properties: { pattern, message: { type: 'string', minLength: 1 } },
        },
      },
      allow: { type: 'array', default: [], items: pattern },
      injection_phrases: { type: 'boolean', default: false },
      look_at: {
        type: 'array',
        items: { enum: [...origins] },
        uniqueItems: true,
        default: ['user', 'tool_result'],
      },
      unreadable: { enum: ['pass', 'refuse'], default: 'pass' },
      message: { type: 'string', minLength: 1, default: 'The prompt was blocked (content_blocked).' },
      judge: judgeSchema(usualQuestion),
    },
  },
  setup({ deny, allow, injection_phrases, look_at, unreadable, message, judge: judgeOptions }, kit) {
    const denied = denier(deny, allow, injection_phrases ? injectionPhrases : [])
    const judge = judgeOptions && new Judge(judgeOptions, kit)
    // A variable that is missing is reported when the plugin is set up, not when the first call comes.
    if (judgeOptions) kit.secret(judgeOptions.key)
    return {
      async request(request, call) {
        if (judge?.asks(call)) return undefined
        const { organization, key, id } = call
        const refuse = (by: string, text = message): never => {
          kit.log.warn({ call: id, organization, key, by }, 'refused a prompt')
          throw new Refusal(400, text, { param: paramOf(request) })
        }
        const unread = unreadOf(request, look_at)
        if (unread.length > 0 && unreadable === 'refuse')
          refuse('unreadable', `The prompt has parts that cannot be checked (${unread.join(', ')}).`)
        if (unread.length > 0) kit.log.info({ call: id, organization, key, unread }, 'passes parts that were not read')
        const { all, runs, fresh } = textsOf(request, look_at)
        for (const text of [...all, ...runs.flatMap(joined)]) {
          const match = denied(text)
          if (match) refuse(match.index < 0 ? 'injection_phrases' : `deny[${match.index}]`, match.message)
        }
        if (judge && fresh.length > 0 && (await judge.blocks(fresh, call))) refuse('judge')
        return undefined
      },
    }
  },
})

/** Returns texts that follow each other as one: a model reads them without a border, wherever a client has cut them. */
function joined(texts: readonly string[]): string[] {
  return texts.length > 1 ? [texts.join(''), texts.join(' ')] : []
}
