package vault

import "context"

// CompareNewEvents is what Run does periodically: it compares the database with what was added to the log.
func (b *Bound) CompareNewEvents(ctx context.Context) error { return b.compareNewEvents(ctx) }
