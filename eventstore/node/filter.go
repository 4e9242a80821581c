package node

import (
	"math"
	"regexp"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"lieudit/eventstore"
)

// pageSize is how many events EventStoreDB reads at a time for a filter without a window, and how many it holds for a
// subscriber before it lets the subscriber catch up again.
const pageSize = 32

// filter is what a filtered read of the whole log wants.
type filter struct {
	byType             bool           // of event types, not stream names
	prefixes           []string       // one of them
	regex              *regexp.Regexp // instead of prefixes
	checkpointInterval uint64         // considered events from one checkpoint to the next
}

func parseFilter(o *streams.ReadReq_Options_FilterOptions, follow bool) (*filter, error) {
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
	return f, f.parseWindow(o, follow)
}

func (f *filter) parseWindow(o *streams.ReadReq_Options_FilterOptions, follow bool) error {
	window := uint64(pageSize)
	switch w := o.GetWindow().(type) {
	case *streams.ReadReq_Options_FilterOptions_Count:
	case *streams.ReadReq_Options_FilterOptions_Max:
		window = uint64(w.Max)
	default:
		return invalidArgument("The filter's window is missing.")
	}
	f.checkpointInterval = window * uint64(o.GetCheckpointIntervalMultiplier())
	if follow && (f.checkpointInterval == 0 || f.checkpointInterval > math.MaxInt32) {
		return invalidArgument("The filter's window and checkpoint interval multiplier must be positive.")
	}
	return nil
}

// matches says whether an event is asked for; no filter asks for every one.
func (f *filter) matches(e eventstore.RecordedEvent) bool {
	if f == nil {
		return true
	}
	if isHidden(e.Stream) {
		return false
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

// isHidden names the streams that EventStoreDB never shows to a filter. Others that begin with "$" it does show.
func isHidden(stream string) bool {
	if stream == "$epoch-information" {
		return true
	}
	rest, ok := strings.CutPrefix(stream, "$persistentsubscription-$all::")
	return ok && (strings.HasSuffix(rest, "-checkpoint") || strings.HasSuffix(rest, "-parked"))
}
