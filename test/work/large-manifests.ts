const price = 'pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]'
const apis = {
  c: 'chat',
  i: 'image',
  p: 'completion',
  e: 'embedding',
  r: 'rerank',
  m: 'moderation',
  t: 'transcription',
  s: 'speech',
}
const models = (names: readonly (keyof typeof apis)[]) =>
  names.map((name) => `  ${name}: { api: ${apis[name]}, context_window: 200000000, ${price} }`).join('\n')

/** Returns the manifests of a provider with a model for each endpoint, and of one of another format. */
export function largeManifests(url: string): Record<string, string> {
  const endpoints = ['image', 'image_edit', 'complete', 'moderate', 'transcribe', 'speech', 'embed', 'rerank']
  const all = `${endpoints.map((name) => `  ${name}: {}`).join('\n')}\n`
  const head = (slug: string, dialect: string) =>
    `slug: ${slug}\nname: Test\nbase_url: ${url}\nauth: { scheme: none }\ndialect: ${dialect}\n`
  const names = Object.keys(apis) as (keyof typeof apis)[]
  return {
    'providers/all.yaml': `${head('all', 'openai-chat')}endpoints:\n${all}models:\n${models(names)}\n`,
    'providers/other.yaml': `${head('other', 'gemini')}models:\n${models(['c'])}\n`,
  }
}
