package event

// The format of a log says what may stand on it. Old and new programs share a log during an upgrade, and an older program
// stops at an event whose type it lacks. So a type that older programs lack, in a category of streams that they read, names
// the format it needs in its line of the catalog (Type.sinceFormat), and a new form of stream has a constant here. Both are
// written only once the log's format is at least that: commands/deployment reports whether it is, and an operator raises it when
// no older program runs any more.
const (
	// FirstFormat is the format of a log on which no format was ever raised.
	FirstFormat = 1
	// CheckedFormat is the first that is raised. From it on only programs run that check the format when they start, so that
	// later formats keep older programs away. It allows no new type of event.
	CheckedFormat = 2
	// SealedTextFormat is the first in which the labels of keys and tokens, the names of referentials and the reasons in the
	// envelopes of events are sealed for their account. Before it they are on the log in clear.
	SealedTextFormat = 3
	// ReleasesFormat is the first in which vintages and road networks are released on the log, so that all instances serve the
	// same. Before it an import is of the instance that it was made at.
	ReleasesFormat = 4

	// HighestFormat is the highest format that this program knows: it writes nothing that needs a higher one, and does not use
	// a log that has one.
	HighestFormat = ReleasesFormat
)

// MinFormat is the lowest format of a log that may hold events of the type.
func (t Type) MinFormat() int { return max(t.minFormat, FirstFormat) }

// sinceFormat returns the catalog line with the lowest format of a log that may hold events of the type. Every type that was
// not in the first releases says it.
func (t Type) sinceFormat(format int) Type {
	t.minFormat = format
	return t
}

// SaysFormat reports whether the catalog line names a format, which it must for a type that was not in the first releases.
func (t Type) SaysFormat() bool { return t.minFormat != 0 }
