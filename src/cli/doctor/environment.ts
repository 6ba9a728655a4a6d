import { adminKeyVariable, requireUsableSecret } from '../../access/secrets.ts'
import { formatProblem } from '../../manifest/check/problem.ts'
import type { Provider } from '../../manifest/provider.ts'
import type { Environment } from '../../manifest/read/environment.ts'
import { logFormat, logLevels } from '../../observe/log.ts'
import { traceSettings } from '../../observe/tracing.ts'
import { credentialNames } from '../../snapshot/load-files.ts'
import type { Built, Snapshot } from '../../snapshot/snapshot.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** Checks all files: those that `serve` would refuse are problems, warnings are warnings. */
export function checkFiles({ snapshot, problems }: Pick<Built, 'snapshot' | 'problems'>): Finding[] {
  const found = problems.map((one): Finding => {
    const message = formatProblem(one).replace(': warning: ', ': ')
    const fix = 'correct the file; `inference-router check` says whether it is right'
    return one.severity === 'warning' ? warning('files', message, fix) : problem('files', message, fix)
  })
  if (snapshot) {
    const { config, providers, catalog } = snapshot
    found.push(ok('files', `${config.path}: ${providers.size} providers, ${catalog.list().length} models`))
  }
  return found
}

/** Checks the variables of the environment: settings of the process, and the secrets of the providers that are to serve calls. */
export function checkEnvironment(
  snapshot: Pick<Snapshot, 'config' | 'providers' | 'sources'>,
  env: Environment,
): Finding[] {
  const { providers } = snapshot
  const expected = expectedProviders(snapshot)
  const ready = [...providers.values()].filter(
    (provider) => provider.missing.length === 0 && (isRemote(provider) || expected.has(provider.slug)),
  )
  const found = [
    ...settingsProblems(env),
    ...[...expected].flatMap(([slug, why]) => missingProblems(providers.get(slug), why)),
    ...wrongSecrets(snapshot, env),
  ]
  if (ready.length > 0)
    found.push(ok('environment', `providers that can be called: ${ready.map(({ slug }) => slug).join(', ')}`))
  else {
    const fix = 'set the variable of a provider (`inference-router providers` names it) and start the router with it'
    found.push(
      warning(
        'environment',
        'no provider has its secret: only the demo, and local servers that run, can be called',
        fix,
      ),
    )
  }
  return found
}

/** Checks whether a provider is reached over the network with a credential. Servers of one's own on this machine have none, or any. */
export function isRemote({ auth, baseUrl }: Pick<Provider, 'auth' | 'baseUrl'>): boolean {
  return auth.scheme !== 'none' && !/^(?:localhost|127\.|\[::1\])/.test(URL.parse(baseUrl)?.hostname ?? '')
}

/** Returns the providers that the configuration names, and where: its settings, and the targets of its policies. */
export function expectedProviders({ config }: Pick<Snapshot, 'config'>): Map<string, string> {
  const named = Object.entries(config.providers).flatMap(([slug, { enabled }]) =>
    enabled === false ? [] : [[slug, `providers.${slug}`] as const],
  )
  const targets = [...config.policies.values()].flatMap(({ id, targets }) =>
    targets.map((target) => [target.split('/')[0] ?? '', `policies.${id}`] as const),
  )
  return new Map([...targets, ...named])
}

/** The variable with the address of the simulator. */
export const simulatorVariable = 'INFERENCE_ROUTER_DEMO_URL'

function missingProblems(provider: Provider | undefined, why: string): Finding[] {
  // The router itself sets the address of its simulator.
  const missing = provider?.missing.filter((name) => name !== simulatorVariable) ?? []
  if (!provider || missing.length === 0) return []
  const names = missing.join(', ')
  const message = `${provider.slug} is named by ${why} of the configuration, but ${names} is not set`
  return [problem('environment', message, `set ${names}, or remove ${why}: its calls are refused until then`)]
}

/** Finds credentials that were set with what is around them. */
function wrongSecrets({ config, sources }: Pick<Snapshot, 'config' | 'sources'>, env: Environment): Finding[] {
  return [...credentialNames([...sources.values()], config.providers)].flatMap((name) => {
    const value = env[name] ?? ''
    const around = /^\s|\s$/.test(value) ? 'spaces or line breaks' : /^(["']).*\1$/s.test(value) ? 'quotes' : undefined
    if (around === undefined) return []
    return [
      problem('environment', `${name} has ${around} around its value, which are sent`, `set ${name} without ${around}`),
    ]
  })
}

/** Checks the variables that the process itself reads. */
function settingsProblems(env: Environment): Finding[] {
  const checks = [
    () => requireUsableSecret(env[adminKeyVariable]),
    () => void logLevels(env.LOG_LEVEL),
    () => void logFormat(env.LOG_FORMAT),
    () => void traceSettings(env),
  ]
  return checks.flatMap((check) => {
    try {
      check()
      return []
    } catch (thrown) {
      return [
        problem('environment', (thrown as Error).message, 'correct the variable: the router does not start with it'),
      ]
    }
  })
}
