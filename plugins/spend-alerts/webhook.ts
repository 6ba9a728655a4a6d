import { createHmac, hash } from 'node:crypto'
import type { Kit } from 'inference-router/plugin'
import { type Alert, sentenceOf } from './thresholds.ts'

export type WebhookOptions = { url: string; form: 'json' | 'slack'; secret?: string }

/** A webhook; `id` names it without telling its address, which may be a secret. `send` rejects where it was not accepted. */
export type Webhook = { id: string; send(alert: Alert): Promise<void> }

/** Throws for a variable that is not set. */
export function openWebhook({ url, form, secret }: WebhookOptions, kit: Pick<Kit, 'fetch' | 'secret'>): Webhook {
  const address = url.startsWith('$') ? kit.secret(url) : url
  const key = secret === undefined ? undefined : kit.secret(secret)
  return {
    id: hash('sha256', address, 'hex').slice(0, 12),
    async send(alert) {
      const body = JSON.stringify(form === 'slack' ? { text: sentenceOf(alert) } : alert)
      const headers = { 'content-type': 'application/json', ...(key !== undefined && signed(body, key)) }
      const signal = AbortSignal.timeout(answerMs)
      const response = await kit.fetch(address, { method: 'POST', headers, body, redirect: 'error', signal })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`it answered ${response.status}`)
    },
  }
}

const answerMs = 10_000

/** Signs the time in seconds, a point and the body. */
function signed(body: string, key: string): Record<string, string> {
  const time = Math.floor(Date.now() / 1_000)
  const digest = createHmac('sha256', key).update(`${time}.${body}`).digest('hex')
  return { 'x-router-signature': `t=${time},v1=${digest}` }
}
