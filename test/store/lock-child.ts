import { openStore } from '../../src/store/open.ts'

// A router's database, held until somebody kills the process.
const store = openStore(process.argv[2] ?? '', { asRouter: true })
process.stdout.write('claimed\n')
setInterval(() => store.keys.any(), 60_000)
