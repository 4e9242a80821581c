package clientip

import (
	"net/http"
	"net/netip"
	"strings"
)

// The names of the two headers in their canonical form. Most proxies use the first; the second is from RFC 7239.
const (
	forwardedForHeader = "X-Forwarded-For"
	forwardedHeader    = "Forwarded"
)

func hasForwardedHeader(h http.Header) bool {
	return h[forwardedForHeader] != nil || h[forwardedHeader] != nil
}

// listNodes returns the addresses of a line of X-Forwarded-For.
func listNodes(line string) []string {
	var nodes []string
	for node := range strings.SplitSeq(line, ",") {
		if node = strings.TrimSpace(node); node != "" {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// pairNodes returns the parameter "for" of each element of a line of Forwarded, or "" for an element with none or several. For a line
// with an open quote it returns a single "": after a client's open quote, the proxy's text can no longer be told from the client's.
func pairNodes(line string) []string {
	elements, ok := splitOutsideQuotes(line, ',')
	if !ok {
		return []string{""}
	}
	var nodes []string
	for _, element := range elements {
		if strings.TrimSpace(element) != "" {
			nodes = append(nodes, nodeOfElement(element))
		}
	}
	return nodes
}

// nodeOfElement returns the parameter "for" of an element of Forwarded, or "" unless there is exactly one.
func nodeOfElement(element string) (node string) {
	pairs, _ := splitOutsideQuotes(element, ';') // the quotes were found to be closed
	found := 0
	for _, pair := range pairs {
		if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(strings.TrimSpace(name), "for") {
			node, found = unquote(strings.TrimSpace(value)), found+1
		}
	}
	if found > 1 {
		return ""
	}
	return node
}

// splitOutsideQuotes splits a text at a separator that does not stand within quotes. It returns false if a quote stays open. A
// backslash within quotes escapes the next character.
func splitOutsideQuotes(s string, separator byte) (parts []string, ok bool) {
	begin, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted && s[i] == '\\':
			i++
		case !quoted && s[i] == separator:
			parts, begin = append(parts, s[begin:i]), i+1
		}
	}
	return append(parts, s[begin:]), !quoted
}

// unquote removes the quotes of a value and the backslashes within them. No address contains either.
func unquote(value string) string {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return value
	}
	return strings.ReplaceAll(value[1:len(value)-1], `\`, "")
}

// parseNode parses an address as the headers and http.Request.RemoteAddr have it: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1]
// or [2001:db8::1]:80. The port is ignored. For any other text the address is invalid.
func parseNode(text string) netip.Addr {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, after, closed := strings.Cut(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if err != nil || !closed || after != "" && after[0] != ':' || !addr.Is6() {
			return netip.Addr{}
		}
		return addr.Unmap().WithZone("")
	}
	if host, port, _ := strings.Cut(text, ":"); !strings.Contains(port, ":") {
		text = host
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}
