import { api } from './api.ts'
import { begin, type Self } from './session.ts'

/** Signs in with a key. Throws ApiError, or an Error that names the permission that the key lacks. */
export async function signIn(secret: string): Promise<void> {
  // Requested immediately, though it is shown only after the other.
  const asked = api<{ name: string }>('v1/manage/org', { as: secret })
  asked.catch(() => {})
  const found = await api<Self>('v1/auth/check', { as: secret })
  if (found.permissions.manage === 'none')
    throw new Error('This key cannot see anything here: the console needs a key with manage: read or manage: write.')
  const { name } = await asked
  begin(secret, found, name)
}
