// CoreDNS with the plugins that the laboratory's Corefile uses, and no others.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

// The order of execution, as in CoreDNS's own plugin.cfg, but for template: it denies what the others do not know.
func init() {
	dnsserver.Directives = []string{"ready", "errors", "hosts", "kubernetes", "template"}
}

func main() {
	coremain.Run()
}
