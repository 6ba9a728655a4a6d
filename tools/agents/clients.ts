import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { prompt } from './script.ts'

/** The place of a session, and the server that it calls. */
export type Place = {
  /** The home of the session, which nothing else uses. */
  home: string
  /** Address of the router, or of a provider that is called directly, without /v1. */
  url: string
  key: string
  model: string
}

/** The programs that start a client, in their order. */
export type Command = { program: string; args: readonly string[]; env?: Readonly<Record<string, string>> }

/** A command line agent: writes its settings, and names the programs that start it. */
export type Client = {
  /** The npm package that it comes in. */
  package: string
  prepare(place: Place): readonly Command[]
}

const mcpServer = { command: process.execPath, args: [join(import.meta.dirname, 'mcp-server.ts')] }

/** All clients, by their names. One that speaks several APIs is here once for each. */
export const clients: Readonly<Record<string, Client>> = {
  'claude-code': { package: '@anthropic-ai/claude-code', prepare: claudeCode },
  codex: { package: '@openai/codex', prepare: codex },
  opencode: { package: 'opencode-ai', prepare: (place) => opencode(place, '@ai-sdk/openai-compatible') },
  'opencode-responses': { package: 'opencode-ai', prepare: (place) => opencode(place, '@ai-sdk/openai') },
  'opencode-messages': { package: 'opencode-ai', prepare: (place) => opencode(place, '@ai-sdk/anthropic') },
  cline: { package: 'cline', prepare: cline },
  copilot: {
    package: '@github/copilot',
    prepare: (place) => copilot(place, { COPILOT_PROVIDER_WIRE_API: 'completions' }),
  },
  'copilot-responses': {
    package: '@github/copilot',
    prepare: (place) => copilot(place, { COPILOT_PROVIDER_WIRE_API: 'responses' }),
  },
  'copilot-messages': {
    package: '@github/copilot',
    prepare: (place) => copilot(place, { COPILOT_PROVIDER_TYPE: 'anthropic' }),
  },
  'qwen-code': { package: '@qwen-code/qwen-code', prepare: (place) => qwenCode(place, 'openai') },
  'qwen-code-messages': { package: '@qwen-code/qwen-code', prepare: (place) => qwenCode(place, 'anthropic') },
}

function claudeCode({ home, url, key, model }: Place): Command[] {
  const servers = put(home, 'mcp.json', { mcpServers: { weather: mcpServer } })
  const env = {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: key,
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    // As root it runs tools in a sandbox only.
    IS_SANDBOX: '1',
  }
  return [{ program: 'claude', args: ['-p', prompt, '--mcp-config', servers, '--dangerously-skip-permissions'], env }]
}

function codex({ home, url, key, model }: Place): Command[] {
  const settings = {
    model,
    model_provider: 'router',
    'model_providers.router': { name: 'router', base_url: `${url}/v1`, wire_api: 'responses', env_key: 'ROUTER_KEY' },
    'mcp_servers.weather': mcpServer,
  }
  put(home, '.codex/config.toml', tomlOf(settings))
  const args = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt]
  return [{ program: 'codex', args, env: { ROUTER_KEY: key } }]
}

function opencode({ home, url, key, model }: Place, npm: string): Command[] {
  put(home, '.config/opencode/opencode.json', {
    provider: {
      router: {
        npm,
        name: 'router',
        options: { baseURL: `${url}/v1`, apiKey: key },
        models: { [model]: { name: model } },
      },
    },
    permission: 'allow',
    autoupdate: false,
    share: 'disabled',
    mcp: { weather: { type: 'local', command: [mcpServer.command, ...mcpServer.args], enabled: true } },
  })
  return [{ program: 'opencode', args: ['run', '-m', `router/${model}`, prompt] }]
}

function cline({ home, url, key, model }: Place): Command[] {
  put(home, '.cline/data/settings/cline_mcp_settings.json', { mcpServers: { weather: mcpServer } })
  const login = ['auth', '-p', 'openai', '-k', key, '-b', `${url}/v1`, '-m', model]
  return [
    { program: 'cline', args: login },
    { program: 'cline', args: [prompt] },
  ]
}

function copilot({ home, url, key, model }: Place, env: Readonly<Record<string, string>>): Command[] {
  const servers = put(home, 'mcp.json', { mcpServers: { weather: { type: 'local', tools: ['*'], ...mcpServer } } })
  const base = env.COPILOT_PROVIDER_TYPE === 'anthropic' ? url : `${url}/v1`
  const args = ['--allow-all-tools', '--additional-mcp-config', `@${servers}`, '-p', prompt]
  const common = {
    COPILOT_OFFLINE: 'true',
    COPILOT_PROVIDER_BASE_URL: base,
    COPILOT_PROVIDER_API_KEY: key,
    COPILOT_MODEL: model,
  }
  return [{ program: 'copilot', args, env: { ...common, ...env } }]
}

function qwenCode({ home, url, key, model }: Place, api: 'openai' | 'anthropic'): Command[] {
  put(home, '.qwen/settings.json', { mcpServers: { weather: { ...mcpServer, trust: true } } })
  const env = {
    openai: { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: model },
    anthropic: { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: url, ANTHROPIC_MODEL: model },
  }
  return [{ program: 'qwen', args: ['--auth-type', api, '--yolo', '-p', prompt], env: env[api] }]
}

/** Writes a file below the home and returns its path. */
function put(home: string, name: string, content: string | object): string {
  const path = join(home, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
  return path
}

/** Settings as TOML: texts first, then tables of texts and lists. */
function tomlOf(settings: Readonly<Record<string, string | object>>): string {
  const value = (one: unknown) => JSON.stringify(one)
  const entries = Object.entries(settings)
  const texts = entries.filter(([, one]) => typeof one === 'string').map(([name, one]) => `${name} = ${value(one)}`)
  const tables = entries
    .filter(([, one]) => typeof one !== 'string')
    .map(([name, one]) =>
      [`[${name}]`, ...Object.entries(one).map(([key, inner]) => `${key} = ${value(inner)}`)].join('\n'),
    )
  return [...texts, ...tables].join('\n\n')
}
