import { definePlugin, type PluginBudget } from 'inference-router/plugin'
import { Alarms } from './alarms.ts'
import { crossedBy, type ThresholdOptions, thresholdsOf } from './thresholds.ts'
import { openWebhook, type WebhookOptions } from './webhook.ts'

type Options = ThresholdOptions & { webhooks: WebhookOptions[]; every_seconds: number; attempts: number }

const values = { type: 'array', items: { type: 'number', exclusiveMinimum: 0 }, uniqueItems: true }
const valuesOf = (...owners: string[]) => ({
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(owners.map((owner) => [owner, values])),
})

export default definePlugin<Options>({
  description: 'Notifies webhooks when a share of a budget is used, a sum is spent, or a balance is low',
  options: {
    required: ['webhooks'],
    anyOf: [{ required: ['percent'] }, { required: ['spend_usd'] }, { required: ['balance_below_usd'] }],
    properties: {
      percent: valuesOf('key', 'group'),
      spend_usd: valuesOf('key', 'group', 'organization'),
      balance_below_usd: values,
      webhooks: {
        type: 'array',
        minItems: 1,
        items: {
          type: 'object',
          additionalProperties: false,
          required: ['url'],
          properties: {
            url: { type: 'string', pattern: '^(https?://|\\$[A-Za-z_])' },
            form: { enum: ['json', 'slack'], default: 'json' },
            secret: { type: 'string', pattern: '^\\$[A-Za-z_][A-Za-z0-9_]*$' },
          },
        },
      },
      every_seconds: { type: 'number', minimum: 0.01, maximum: 3_600, default: 10 },
      attempts: { type: 'integer', minimum: 1, maximum: 12, default: 7 },
    },
  },
  setup({ webhooks, every_seconds, attempts, ...options }, kit) {
    const thresholds = thresholdsOf(options)
    const alarms = new Alarms(
      webhooks.map((webhook) => openWebhook(webhook, kit)),
      { attempts, ...kit },
    )
    /** Keys that have spent since their budgets were last looked at. */
    let spending = new Set<string>()
    let timer: NodeJS.Timeout | undefined

    const look = async () => {
      const keys = spending
      spending = new Set()
      const seen = new Map<string, PluginBudget>()
      for (const key of keys)
        for (const budget of await kit.budgets(key)) seen.set(`${budget.owner} ${budget.id}`, budget)
      const states = [...seen.values()].flatMap((budget) => thresholds.flatMap((one) => crossedBy(budget, one) ?? []))
      await Promise.all(states.map((state) => alarms.see(state)))
    }
    const lookQuietly = () => look().catch((err: unknown) => kit.log.error({ err }, 'budgets could not be read'))
    const lookLater = () => {
      timer ??= setTimeout(() => {
        timer = undefined
        void lookQuietly()
      }, every_seconds * 1_000).unref()
    }
    return {
      record({ attempts }, { key }) {
        // A call that costs nothing may have had attempts that do.
        if (attempts === 0) return
        spending.add(key)
        lookLater()
      },
      async [Symbol.asyncDispose]() {
        clearTimeout(timer)
        alarms.close()
        await lookQuietly()
      },
    }
  },
})
