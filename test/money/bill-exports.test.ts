import { describe, expect, test } from 'vitest'
import { readBill } from '../../tools/bills/bill.ts'
import { modelNames } from '../../tools/bills/model-names.ts'

const day = (of: number) => Date.UTC(2026, 10, of)

/** A bill's sums in micro-USD by day of November 2026 and name, as a comparison has them; what is left out under `left`. */
async function sums(text: string, models: readonly string[]) {
  const names = modelNames(models.map((model) => ({ model, aliases: [] })))
  const { lines, left } = await readBill(new TextEncoder().encode(text), 'bill.csv')
  const found: Record<string, number> = {}
  for (const { day: at, model, nano, texts = [] } of lines) {
    const name = `${(at - day(1)) / 86_400_000 + 1} ${names.of(names.within(texts) ?? model)}`
    found[name] = (found[name] ?? 0) + Number(nano) / 1_000
  }
  return { ...found, ...(left.lines > 0 && { left: [left.lines, Number(left.nano) / 1_000] }) }
}

const openai = `start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,line_item,project_id
1793491200,1793577600,2026-11-01T00:00:00+00:00,2026-11-02T00:00:00+00:00,0.000010,usd,"gpt-5-2025-08-07, input",p
1793491200,1793577600,2026-11-01T00:00:00+00:00,2026-11-02T00:00:00+00:00,0.000002,usd,"gpt-5-2025-08-07, cached input",p
1793491200,1793577600,2026-11-01T00:00:00+00:00,2026-11-02T00:00:00+00:00,0.000040,usd,"gpt-5-2025-08-07, output",p
1793577600,1793664000,2026-11-02T00:00:00+00:00,2026-11-03T00:00:00+00:00,0.000003,usd,"o3, output",p
1793577600,1793664000,2026-11-02T00:00:00+00:00,2026-11-03T00:00:00+00:00,0.01,usd,web search tool calls,p
`

const anthropic = `usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd,list_price_usd,cost_type
2026-11-01,Claude Haiku 4.5,Default,k,message,≤ 200k,input_no_cache,0.000005,0.000009,token
2026-11-01,Claude Haiku 4.5,Default,k,message,≤ 200k,output,0.000007,0.000009,token
2026-11-02,Claude Sonnet 4.5,Default,k,message,≤ 200k,input_cache_read,0.000001,0.000001,token
2026-11-02,,Default,k,,,,0.01,0.01,web_search
`

const google = `Invoice number,123,
Billing account ID,000000-000000-000000,
Currency,USD,
Billing account name,Project ID,Service description,SKU description,SKU ID,Credit type,Cost type,Usage start date,Usage end date,Usage amount,Usage unit,Unrounded Cost ($),Cost ($)
A,p,Gemini API,Generate content input token count gemini 2.5 flash short input text,K1,,Usage,2026-11-01,2026-11-01,"1,000",count,0.000004,0.00
A,p,Vertex AI,Gemini 2.5 Flash Thinking Text Output - Predictions,K2,,Usage,2026-11-01,2026-11-02,10,count,0.000006,0.00
A,p,Gemini API,Generate content output token count gemini 9 ultra text,K3,,Usage,2026-11-02,2026-11-02,10,count,0.000001,0.00
A,p,Cloud Storage,Standard Storage,K4,,Usage,2026-11-01,2026-11-01,10,gibibyte,40.00,40.00
`

const bigQuery = `service.description,sku.description,usage_start_time,usage_end_time,cost,currency
Vertex AI,Gemini 2.5 Pro Text Input - Predictions,2026-11-01 08:00:00 UTC,2026-11-01 09:00:00 UTC,0.000002,USD
`

const aws = `identity/LineItemId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/LineItemType,lineItem/ProductCode,lineItem/UsageType,lineItem/UnblendedCost,lineItem/CurrencyCode,lineItem/LineItemDescription,product/ProductName,product/model
1,2026-11-01T00:00:00Z,2026-11-01T01:00:00Z,Usage,AmazonBedrock,USE1-Nova2.0Lite-input-tokens,0.000003,USD,$0.33 per 1M tokens,Amazon Bedrock,Nova 2.0 Lite
2,2026-11-01T05:00:00Z,2026-11-01T06:00:00Z,Usage,AmazonBedrock,USE1-Nova2.0Lite-output-tokens,0.000009,USD,$2.75 per 1M tokens,Amazon Bedrock,
3,2026-11-01T05:00:00Z,2026-11-01T06:00:00Z,Usage,8fyj1a,USE1-MP:USE1_InputTokenCount-Units,0.000020,USD,AWS Marketplace software usage,Claude Haiku 4.5 (Amazon Bedrock Edition),
4,2026-11-01T05:00:00Z,2026-11-01T06:00:00Z,Usage,AmazonS3,USE1-Requests-Tier1,1.5,USD,per 1000 requests,Amazon Simple Storage Service,
`

const aws2 = `line_item_usage_start_date,line_item_usage_end_date,line_item_product_code,line_item_usage_type,line_item_unblended_cost,line_item_currency_code
2026-11-01 05:00:00,2026-11-01 06:00:00,AmazonBedrock,USE1-Claude4.5Haiku-output-tokens,0.000005,USD
`

const costExplorer = `"Service","Claude Haiku 4.5 (Amazon Bedrock Edition)($)","S3($)","Total costs($)"
"Service total","0.000007","3","3.000007"
"2026-11-01","0.000003","1","1.000003"
"2026-11-02","0.000004","2","2.000004"
`

const costExplorerByType = `Usage type,USE1-Nova2.0Lite-input-tokens($),USE1-Nova2.0Lite-output-tokens($),USE1-Requests-Tier1($),Total costs($)
2026-11-01,0.000003,0.000004,,0.000007
`

const openrouter = `generation_id,created_at,cost_total,cost_web_search,cost_cache,tokens_prompt,tokens_completion,model_permaslug,provider_name,variant
gen-1,2026-11-01 08:00:00.123,0.000008,0,0,10,5,anthropic/claude-4.5-sonnet-20250929,Anthropic,standard
gen-2,2026-11-01 09:00:00.456,0.000002,0,0,10,5,anthropic/claude-4.5-sonnet-20250929,Google,standard
`

describe('the export of', () => {
  test.each([
    ['OpenAI', openai, ['gpt-5', 'o3'], { '1 gpt-5': 52, '2 o3': 3, '2 web search tool calls': 10_000 }],
    [
      'Anthropic',
      anthropic,
      ['claude-haiku-4-5-20251001', 'claude-sonnet-4-5'],
      { '1 claude-haiku-4-5': 12, '2 claude-sonnet-4-5': 1, left: [1, 10_000] },
    ],
    [
      'Google Cloud',
      google,
      ['gemini-2.5-flash', 'gemini-2.5-flash-lite'],
      {
        '1 gemini-2.5-flash': 10,
        '2 Generate content output token count gemini 9 ultra text': 1,
        left: [1, 40_000_000],
      },
    ],
    ['Google Cloud to BigQuery', bigQuery, ['gemini-2.5-pro'], { '1 gemini-2.5-pro': 2 }],
    [
      'AWS',
      aws,
      ['amazon.nova-2-lite-v1:0', 'global.anthropic.claude-haiku-4-5-20251001-v1:0'],
      { '1 nova-2-lite': 12, '1 claude-haiku-4-5': 20, left: [1, 1_500_000] },
    ],
    ['AWS, second version', aws2, ['anthropic.claude-haiku-4-5-20251001-v1:0'], { '1 claude-haiku-4-5': 5 }],
    [
      'AWS Cost Explorer, by service',
      costExplorer,
      ['anthropic.claude-haiku-4-5-20251001-v1:0'],
      { '1 claude-haiku-4-5': 3, '2 claude-haiku-4-5': 4, left: [2, 3_000_000] },
    ],
    ['AWS Cost Explorer, by usage type', costExplorerByType, ['us.amazon.nova-2-lite-v1:0'], { '1 nova-2-lite': 7 }],
    ['OpenRouter', openrouter, ['anthropic/claude-sonnet-4.5'], { '1 claude-sonnet-4.5': 10 }],
    [
      'OpenRouter by day',
      'date,model,model_permaslug,provider_name,usage,requests\n2026-11-01,x,openai/gpt-5-2025-08-07,OpenAI,0.000004,2\n',
      ['openai/gpt-5'],
      { '1 gpt-5': 4 },
    ],
  ] as const)('%s is known by its columns', async (_of, text, models, expected) => {
    expect(await sums(text, models)).toEqual(expected)
  })

  test('any provider may have a column of the model chosen instead', async () => {
    const bytes = new TextEncoder().encode(openai)
    const { lines } = await readBill(bytes, 'bill.csv', { model: 'project_id' })
    expect(new Set(lines.map(({ model }) => model))).toEqual(new Set(['p']))
  })
})

describe('a currency that cannot be added', () => {
  const euro = /the ledger is in USD, and amounts of another currency cannot be added/
  test.each([
    ['in a column', openai.replaceAll(',usd,', ',eur,'), /bill\.csv:2: amount_currency is eur: /],
    ['in one line', aws.replace('0.000009,USD', '0.000009,EUR'), /bill\.csv:3: lineItem\/CurrencyCode is EUR: /],
    ['in the columns of a pivot', costExplorer.replaceAll('($)', '(EUR)'), /the column 'cost \(EUR\)' is EUR: /],
    ['before the table', google.replace('Currency,USD', 'Currency,EUR'), /bill\.csv:3: currency is EUR: /],
    ['in a title', google.replaceAll('($)', '(€)'), /bill\.csv:4: the column 'Unrounded Cost \(€\)' is €: /],
    ['in a title, by its code', 'date,model,cost (EUR)\n2026-11-01,m,1\n', /the column 'cost \(EUR\)' is EUR: /],
    ['of any bill', 'date,model,cost,currency\n2026-11-01,m,1,CNY\n', /bill\.csv:2: currency is CNY: /],
    ['that is also written with $', 'date,model,cost (CA$)\n2026-11-01,m,1\n', /is CA\$: /],
  ])('%s is refused, with the place', async (_where, text, place) => {
    await expect(sums(text, [])).rejects.toThrow(place)
    await expect(sums(text, [])).rejects.toThrow(euro)
  })

  test.each(['USD', 'usd', 'US$', '$', ''])('%j is none', async (currency) => {
    expect(await sums(`date,model,cost,currency\n2026-11-01,m,0.000001,${currency}\n`, [])).toEqual({ '1 m': 1 })
  })
})

test('a line of more than a day is refused: it cannot be compared with days', async () => {
  const month = google.replace('2026-11-01,2026-11-01', '2026-11-01,2026-11-30')
  await expect(sums(month, [])).rejects.toThrow(
    /bill\.csv:5: Usage start date is '2026-11-01' and the line ends on 2026-11-30; export the bill by days/,
  )
})
