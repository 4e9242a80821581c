package service

import "context"

// cursorKey is what the cursors of an account are sealed with: they are of no use any more when it is erased.
func (s *service) cursorKey(ctx context.Context, account string) ([]byte, error) {
	return s.vault.Key(ctx, account, true)
}
