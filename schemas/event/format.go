package event

// The format of a log decides what may be written to it. Old and new programs share a log during an upgrade, and an older
// program stops at an event type that it does not know. So a new type in a category that older programs read names the format
// it needs in its catalog line (Type.sinceFormat), and a new form of stream has a constant here. Both are written only once
// the log has that format: commands/deployment reports whether it has, and an operator raises it when no older program runs
// any more.
const (
	// FirstFormat is the format of a log whose format was never raised.
	FirstFormat = 1
	// CheckedFormat is the first raised format. It allows no new event type. From it on, every program checks the format when
	// it starts, so that later formats keep older programs away.
	CheckedFormat = 2
	// SealedTextFormat is the first in which the labels of keys and tokens, the names of referentials and the reasons in event
	// envelopes are sealed for their account. In lower formats they are on the log in clear.
	SealedTextFormat = 3
	// ReleasesFormat is the first in which vintages and road networks are released on the log, so that all instances serve the
	// same. In lower formats an import only affects the instance that made it.
	ReleasesFormat = 4
	// SessionsFormat is the first in which a token has links and sessions, and a key can take the place of another one. Before
	// it people come into the customer area with a token alone, and a rotation leaves no trace on the log.
	SessionsFormat = 5

	// SharedUsageFormat is the first in which the periods of several contracts share a stream of usage, so that their requests share
	// ticks. Periods that are open when a log gets this format go on in streams of their own until they end.
	SharedUsageFormat = 6

	// HighestFormat is the highest format that this program knows. It writes nothing that needs a higher one, and does not use
	// a log that has one.
	HighestFormat = SharedUsageFormat
)

// MinFormat is the lowest format of a log that may hold events of the type.
func (t Type) MinFormat() int { return max(t.minFormat, FirstFormat) }

// sinceFormat returns the catalog line with the lowest format of a log that may hold events of the type. Every type that was
// not in the first releases calls it.
func (t Type) sinceFormat(format int) Type {
	t.minFormat = format
	return t
}

// SaysFormat reports whether the catalog line names a format, as every type that was not in the first releases must.
func (t Type) SaysFormat() bool { return t.minFormat != 0 }
