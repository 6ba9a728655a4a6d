import { createHmac, timingSafeEqual } from 'node:crypto'
import type { JsonObject, Kit, PluginCall } from 'inference-router/plugin'

/** A model that says whether a prompt may pass. */
export type JudgeOptions = { url: string; model: string; key: string; question: string; timeout_ms: number }

/** JSON schema of these options, with the instruction that is usual for what it judges. */
export function judgeSchema(usualQuestion: string): JsonObject {
  return {
    type: 'object',
    additionalProperties: false,
    required: ['url', 'model', 'key'],
    properties: {
      url: { type: 'string', pattern: '^https?://' },
      model: { type: 'string', minLength: 1 },
      key: { type: 'string', pattern: '^\\$[A-Za-z_][A-Za-z0-9_]*$' },
      question: { type: 'string', minLength: 1, default: usualQuestion },
      timeout_ms: { type: 'integer', minimum: 100, maximum: 60_000, default: 10_000 },
    },
  }
}

/** The header by which a judge's own call is known: only a caller with the key can write it for these messages. */
const ownHeader = 'x-guard-judge'
/** The header that counts the judges on whose behalf a judge is asked. */
const depthHeader = 'x-guard-judge-depth'
/** One may be judged by that of another router; more are guards that judge each other's judges. */
const maxDepth = 1

/** A judge behind an OpenAI-compatible API. */
export class Judge {
  readonly #options: JudgeOptions
  readonly #kit: Pick<Kit, 'fetch' | 'secret'>

  constructor(options: JudgeOptions, kit: Pick<Kit, 'fetch' | 'secret'>) {
    this.#options = options
    this.#kit = kit
  }

  /** Checks whether this call is one that a judge with the same key makes. */
  asks({ headers, body }: PluginCall): boolean {
    const given = Buffer.from(headers[ownHeader] ?? '')
    const right = Buffer.from(this.#sign(body.messages))
    return given.length === right.length && timingSafeEqual(given, right)
  }

  /** Checks whether these texts are to be refused. Rejects where the judge does not decide. */
  async blocks(
    texts: readonly string[],
    { headers, signal }: Pick<PluginCall, 'headers' | 'signal'>,
  ): Promise<boolean> {
    const depth = Number(headers[depthHeader] ?? 0)
    if (!(depth <= maxDepth)) throw new Error('judges ask each other: give the judges of all guards the same key')
    const { url, model, key, question, timeout_ms } = this.#options
    const messages = [
      { role: 'system', content: question },
      { role: 'user', content: JSON.stringify(texts) },
    ]
    const response = await this.#kit.fetch(`${url.replace(/\/+$/, '')}/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${this.#kit.secret(key)}`,
        [ownHeader]: this.#sign(messages),
        [depthHeader]: String(depth + 1),
      },
      body: JSON.stringify({ model, messages }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeout_ms)]),
    })
    if (!response.ok) throw new Error(`the judge answered with status ${response.status}`)
    const verdict = verdictIn(await response.json())
    if (verdict === undefined) throw new Error('the judge answered neither BLOCK nor PASS')
    return verdict === 'BLOCK'
  }

  #sign(messages: unknown): string {
    return createHmac('sha256', this.#kit.secret(this.#options.key))
      .update(JSON.stringify(messages ?? null))
      .digest('hex')
  }
}

function verdictIn(answer: unknown): string | undefined {
  const { choices } = answer as { choices?: { message?: { content?: unknown } }[] }
  const said = choices?.[0]?.message?.content
  return typeof said === 'string' ? /^\W*(BLOCK|PASS)\b/i.exec(said)?.[1]?.toUpperCase() : undefined
}
