import { type ApiName, type OperationKind, paths } from './request.ts'

/** An endpoint that code calls. */
type Called = ApiName | OperationKind

export const languages = ['curl', 'python', 'typescript'] as const
export type Language = (typeof languages)[number]
export const languageNames: { readonly [language in Language]: string } = {
  curl: 'curl',
  python: 'Python',
  typescript: 'TypeScript',
}

/** The environment variable that code takes the key from: the key itself is never shown. */
export const keyVariable = 'ROUTER_API_KEY'

/** Writes a program that sends a body to the router at `base`, such as https://router.example. */
export function codeFor(
  language: Language,
  api: Called,
  body: Readonly<Record<string, unknown>>,
  base: string,
): string {
  return writers[language](api, body, base)
}

type Writer = (api: Called, body: Readonly<Record<string, unknown>>, base: string) => string

const writers: { readonly [language in Language]: Writer } = {
  curl(api, body, base) {
    const stream = body.stream === true ? ' --no-buffer' : api === 'speech' ? ` --output ${speechFile(body)}` : ''
    return `curl${stream} ${shellText(`${base}/${paths[api]}`)} \\
  -H "Authorization: Bearer $${keyVariable}" \\
  -H "Content-Type: application/json" \\
  -d ${shellText(JSON.stringify(body, null, 2))}
`
  },
  python(api, body, base) {
    const entries = Object.entries(body)
      .map(([name, value]) => `    ${name}=${pythonText(value, 1)},\n`)
      .join('')
    const isStream = body.stream === true
    const begin =
      api === 'messages'
        ? `from anthropic import Anthropic\n\nclient = Anthropic(base_url=${pythonText(base)}, api_key=os.environ["${keyVariable}"])\n`
        : `from openai import OpenAI\n\nclient = OpenAI(base_url=${pythonText(`${base}/v1`)}, api_key=os.environ["${keyVariable}"])\n`
    return `import os\n${begin}\nanswer = client.${method[api]}(\n${entries})\n${isStream ? 'for event in answer:\n    print(event)\n' : api === 'speech' ? `answer.write_to_file("${speechFile(body)}")\n` : 'print(answer)\n'}`
  },
  typescript(api, body, base) {
    const [module, name] = api === 'messages' ? ['@anthropic-ai/sdk', 'Anthropic'] : ['openai', 'OpenAI']
    const url = api === 'messages' ? base : `${base}/v1`
    const shown =
      body.stream === true
        ? 'for await (const event of answer) console.log(JSON.stringify(event))\n'
        : 'console.log(JSON.stringify(answer, null, 2))\n'
    const program = `import ${name} from '${module}'

const client = new ${name}({ baseURL: ${JSON.stringify(url)}, apiKey: process.env.${keyVariable} })
const answer = await client.${method[api]}(${JSON.stringify(body, null, 2)})
`
    if (api === 'speech') {
      const write = `await writeFile('${speechFile(body)}', Buffer.from(await answer.arrayBuffer()))\n`
      return `import { writeFile } from '${fileModule}'\n${program}${write}`
    }
    return `${program}${shown}`
  },
}

const fileModule = 'node:fs/promises'

function speechFile({ response_format: format }: Readonly<Record<string, unknown>>): string {
  return `speech.${String(format)}`
}

const method: { readonly [api in Called]: string } = {
  chat: 'chat.completions.create',
  messages: 'messages.create',
  responses: 'responses.create',
  image: 'images.generate',
  speech: 'audio.speech.create',
  embed: 'embeddings.create',
}

function shellText(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** Writes a value as Python does. */
function pythonText(value: unknown, depth = 0): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const indent = '    '.repeat(depth + 1)
  const end = '    '.repeat(depth)
  const items = Array.isArray(value)
    ? value.map((item) => `${indent}${pythonText(item, depth + 1)},\n`)
    : Object.entries(value).map(([name, item]) => `${indent}${JSON.stringify(name)}: ${pythonText(item, depth + 1)},\n`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return items.length === 0 ? `${open}${close}` : `${open}\n${items.join('')}${end}${close}`
}
