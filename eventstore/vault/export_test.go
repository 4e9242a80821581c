package vault

import "context"

// CatchUp is what Run does periodically: it compares the database with what was added to the log.
func (b *Bound) CatchUp(ctx context.Context) error { return b.compareNewEvents(ctx) }
