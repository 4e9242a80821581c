package node

import (
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

// place is where a read begins: at one of the two ends, or at a revision or position.
type place struct {
	start, end bool
	at         uint64
}

// query is a read request that makes sense.
type query struct {
	stream string // empty: the whole log
	from   place
	dir    eventstore.Direction
	count  uint64
	follow bool // a subscription
	want   *filter
	text   bool // ids as strings
	bounds bool // the client understands the messages that say where a stream begins and ends
}

func parse(req *streams.ReadReq) (*query, error) {
	o := req.GetOptions()
	if o.GetUuidOption() == nil {
		return nil, invalid("`uuidOption` is a required argument.")
	}
	_, text := o.GetUuidOption().GetContent().(*streams.ReadReq_Options_UUIDOption_String_)
	q := &query{text: text, bounds: o.GetControlOption().GetCompatibility() >= 1}
	for _, part := range []func(*streams.ReadReq_Options) error{q.parseSource, q.parseDirection, q.parseCount, q.parseFilter} {
		if err := part(o); err != nil {
			return nil, err
		}
	}
	if q.want != nil && q.stream != "" || q.follow && q.dir == eventstore.Backward {
		return nil, invalid("The combination of stream, count, direction and filter is invalid.")
	}
	return q, nil
}

func (q *query) parseSource(o *streams.ReadReq_Options) (err error) {
	switch source := o.GetStreamOption().(type) {
	case *streams.ReadReq_Options_Stream:
		if len(source.Stream.GetStreamIdentifier().GetStreamName()) == 0 {
			return unhandled()
		}
		if q.stream, err = streamName(source.Stream.GetStreamIdentifier()); err != nil {
			return err
		}
		switch from := source.Stream.GetRevisionOption().(type) {
		case *streams.ReadReq_Options_StreamOptions_Start:
			q.from.start = true
		case *streams.ReadReq_Options_StreamOptions_End:
			q.from.end = true
		case *streams.ReadReq_Options_StreamOptions_Revision:
			return q.parseRevision(from.Revision)
		default:
			return invalid("The revision to read from is missing.")
		}
	case *streams.ReadReq_Options_All:
		switch from := source.All.GetAllOption().(type) {
		case *streams.ReadReq_Options_AllOptions_Start:
			q.from.start = true
		case *streams.ReadReq_Options_AllOptions_End:
			q.from.end = true
		case *streams.ReadReq_Options_AllOptions_Position:
			return q.parsePosition(from.Position)
		default:
			return invalid("The position to read from is missing.")
		}
	default:
		return invalid("What to read is missing.")
	}
	return nil
}

// parseRevision takes the greatest number for the end, as clients that know no better send it.
func (q *query) parseRevision(r uint64) error {
	if r == math.MaxUint64 {
		q.from.end = true
		return nil
	}
	_, err := revision(r)
	q.from.at = r
	return err
}

func (q *query) parsePosition(p *streams.ReadReq_Options_Position) error {
	at := p.GetCommitPosition()
	switch {
	case at != p.GetPreparePosition() || at > math.MaxInt64 && at != math.MaxUint64:
		return invalid("Trying to read from an invalid position.")
	case at == math.MaxUint64:
		q.from.end = true
	default:
		q.from.at = at
	}
	return nil
}

func (q *query) parseDirection(o *streams.ReadReq_Options) error {
	switch o.GetReadDirection() {
	case streams.ReadReq_Options_Forwards:
		q.dir = eventstore.Forward
	case streams.ReadReq_Options_Backwards:
		q.dir = eventstore.Backward
	default:
		return invalid("'%d' is not a direction.", o.GetReadDirection())
	}
	return nil
}

func (q *query) parseCount(o *streams.ReadReq_Options) error {
	switch count := o.GetCountOption().(type) {
	case *streams.ReadReq_Options_Subscription:
		q.follow = true
	case *streams.ReadReq_Options_Count:
		if q.count = count.Count; q.count == 0 {
			return invalid("The count of events to read must be positive.")
		}
	default:
		return invalid("The count of events to read is missing.")
	}
	return nil
}

func (q *query) parseFilter(o *streams.ReadReq_Options) (err error) {
	switch f := o.GetFilterOption().(type) {
	case *streams.ReadReq_Options_NoFilter:
	case *streams.ReadReq_Options_Filter:
		q.want, err = parseFilter(f.Filter, q.follow)
	default:
		return invalid("A filter, or the word that there is none, is missing.")
	}
	return err
}
