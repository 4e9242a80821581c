package node

import (
	"math"
	"regexp"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

// readStart is the start of a read: one of the two ends, or a revision (of a stream) or position (of the log).
type readStart struct {
	fromStart, fromEnd bool
	offset             uint64
}

// query is a valid read request: a read or a subscription, of one stream or of the whole log.
type query struct {
	stream         string // empty: the whole log
	from           readStart
	dir            eventstore.Direction
	count          uint64 // events at most; 0 for a subscription, which has no end
	isSubscription bool
	filter         *filter
	idsAsText      bool // event ids as text instead of two integers
}

// parseQuery validates a read request, or refuses it as EventStoreDB does.
func parseQuery(req *streams.ReadReq) (*query, error) {
	o := req.GetOptions()
	if o.GetUuidOption() == nil {
		return nil, invalidArgument("`uuidOption` is a required argument.")
	}
	_, idsAsText := o.GetUuidOption().GetContent().(*streams.ReadReq_Options_UUIDOption_String_)
	q := &query{idsAsText: idsAsText}
	for _, part := range []func(*streams.ReadReq_Options) error{q.parseSource, q.parseDirection, q.parseCount, q.parseFilter} {
		if err := part(o); err != nil {
			return nil, err
		}
	}
	if q.filter != nil && q.stream != "" || q.isSubscription && q.dir == eventstore.Backward {
		return nil, invalidArgument("The combination of stream, count, direction and filter is invalid.")
	}
	return q, nil
}

// parseSource parses the source of the read, a stream or the whole log, and its start.
func (q *query) parseSource(o *streams.ReadReq_Options) error {
	switch source := o.GetStreamOption().(type) {
	case *streams.ReadReq_Options_Stream:
		return q.parseStreamSource(source.Stream)
	case *streams.ReadReq_Options_All:
		return q.parseAllSource(source.All)
	}
	return invalidArgument("What to read is missing.")
}

// parseStreamSource reads the stream and the revision. Unlike other calls, EventStoreDB does not validate an empty
// stream name here: it throws.
func (q *query) parseStreamSource(source *streams.ReadReq_Options_StreamOptions) (err error) {
	if len(source.GetStreamIdentifier().GetStreamName()) == 0 {
		return unhandledException()
	}
	if q.stream, err = parseStreamName(source.GetStreamIdentifier()); err != nil {
		return err
	}
	switch from := source.GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Start:
		q.from.fromStart = true
	case *streams.ReadReq_Options_StreamOptions_End:
		q.from.fromEnd = true
	case *streams.ReadReq_Options_StreamOptions_Revision:
		q.from.offset = from.Revision
		_, err = parseStreamRevision(from.Revision)
	default:
		err = invalidArgument("The revision to read from is missing.")
	}
	return err
}

// parseAllSource reads the position. A real server has two positions of an event, commit and prepare; without
// transactions they are equal.
func (q *query) parseAllSource(source *streams.ReadReq_Options_AllOptions) error {
	switch from := source.GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_Start:
		q.from.fromStart = true
	case *streams.ReadReq_Options_AllOptions_End:
		q.from.fromEnd = true
	case *streams.ReadReq_Options_AllOptions_Position:
		q.from.offset = from.Position.GetCommitPosition()
		if q.from.offset != from.Position.GetPreparePosition() || q.from.offset > math.MaxInt64 {
			return invalidArgument("Trying to read from an invalid position.")
		}
	default:
		return invalidArgument("The position to read from is missing.")
	}
	return nil
}

// parseDirection refuses a number that is not a direction: the enumeration of the protocol is open.
func (q *query) parseDirection(o *streams.ReadReq_Options) error {
	switch o.GetReadDirection() {
	case streams.ReadReq_Options_Forwards:
		q.dir = eventstore.Forward
	case streams.ReadReq_Options_Backwards:
		q.dir = eventstore.Backward
	default:
		return invalidArgument("'%d' is not a direction.", o.GetReadDirection())
	}
	return nil
}

// parseCount reads whether the request is a subscription or how many events it reads at most.
func (q *query) parseCount(o *streams.ReadReq_Options) error {
	switch count := o.GetCountOption().(type) {
	case *streams.ReadReq_Options_Subscription:
		q.isSubscription = true
	case *streams.ReadReq_Options_Count:
		if q.count = count.Count; q.count == 0 {
			return invalidArgument("The count of events to read must be positive.")
		}
	default:
		return invalidArgument("The count of events to read is missing.")
	}
	return nil
}

// parseFilter requires the client's choice: with or without a filter.
func (q *query) parseFilter(o *streams.ReadReq_Options) (err error) {
	switch f := o.GetFilterOption().(type) {
	case *streams.ReadReq_Options_NoFilter:
	case *streams.ReadReq_Options_Filter:
		q.filter, err = parseFilter(f.Filter, q.isSubscription)
	default:
		return invalidArgument("A filter, or the word that there is none, is missing.")
	}
	return err
}

// pageSize is how many events EventStoreDB reads at a time for a filter without a window. It is also how many it
// queues for a subscriber before the subscriber has to catch up again.
const pageSize = 32

// filter selects events of a filtered read of the whole log.
type filter struct {
	byType             bool           // matches event types instead of stream names
	prefixes           []string       // any of them matches
	regex              *regexp.Regexp // instead of prefixes
	checkpointInterval uint64         // events scanned between two checkpoints
}

// parseFilter reads a filter; isSubscription: checkpoints are sent, so their interval must be valid.
func parseFilter(o *streams.ReadReq_Options_FilterOptions, isSubscription bool) (*filter, error) {
	f := &filter{}
	var expression *streams.ReadReq_Options_FilterOptions_Expression
	switch by := o.GetFilter().(type) {
	case *streams.ReadReq_Options_FilterOptions_EventType:
		f.byType, expression = true, by.EventType
	case *streams.ReadReq_Options_FilterOptions_StreamIdentifier:
		expression = by.StreamIdentifier
	default:
		return nil, invalidArgument("What to filter by is missing.")
	}
	f.prefixes = expression.GetPrefix()
	if text := expression.GetRegex(); text != "" {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, invalidArgument("'%s' is not a regular expression of RE2.", printableHeader(text))
		}
		f.regex = re
	}
	return f, f.parseWindow(o, isSubscription)
}

// parseWindow reads the checkpoint interval, which is the window times a multiplier. A client that sets no window
// sends Count, which means a page.
func (f *filter) parseWindow(o *streams.ReadReq_Options_FilterOptions, isSubscription bool) error {
	window := uint64(pageSize)
	switch w := o.GetWindow().(type) {
	case *streams.ReadReq_Options_FilterOptions_Count:
	case *streams.ReadReq_Options_FilterOptions_Max:
		window = uint64(w.Max)
	default:
		return invalidArgument("The filter's window is missing.")
	}
	f.checkpointInterval = window * uint64(o.GetCheckpointIntervalMultiplier())
	if isSubscription && (f.checkpointInterval == 0 || f.checkpointInterval > math.MaxInt32) {
		return invalidArgument("The filter's window and checkpoint interval multiplier must be positive.")
	}
	return nil
}

// matches reports whether the filter selects an event. A nil filter selects every event.
func (f *filter) matches(e eventstore.RecordedEvent) bool {
	if f == nil {
		return true
	}
	text := e.Stream
	if f.byType {
		text = e.Type
	}
	if f.regex != nil {
		return f.regex.MatchString(text)
	}
	for _, p := range f.prefixes {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}
