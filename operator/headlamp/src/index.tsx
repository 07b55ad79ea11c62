/** Registers the plugin in Headlamp: an entry in the sidebar, the list of investigations, and one of them. */
import { K8s, registerRoute, registerSidebarEntry } from '@kinvolk/headlamp-plugin/lib';
import { request } from '@kinvolk/headlamp-plugin/lib/ApiProxy';
import { Link, ResourceListView, SectionBox } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { ReactNode } from 'react';
import { useParams } from 'react-router-dom';
import { GROUP, plain, row, tarsyApi, VERSION } from './api.js';
import { InvestigationView } from './InvestigationView';

const LIST = 'tarsy-investigations';
const DETAIL = 'tarsy-investigation';
const api = tarsyApi(request);

class Investigation extends K8s.cluster.KubeObject {
  static kind = 'Investigation';
  static apiName = 'investigations';
  static apiVersion = `${GROUP}/${VERSION}`;
  static isNamespaced = true;

  get shown() {
    return row(this.jsonData);
  }
}

registerSidebarEntry({ parent: null, name: 'tarsy', label: 'TARSy', icon: 'mdi:radar', url: '/tarsy/investigations' });
registerSidebarEntry({ parent: 'tarsy', name: LIST, label: 'Investigations', url: '/tarsy/investigations' });
registerRoute({ path: '/tarsy/investigations', sidebar: LIST, name: LIST, exact: true, component: List });
registerRoute({
  path: '/tarsy/investigations/:namespace/:name',
  sidebar: LIST,
  name: DETAIL,
  exact: true,
  component: Detail,
});

function List() {
  return (
    <ResourceListView
      title="Investigations"
      resourceClass={Investigation}
      columns={[
        {
          id: 'name',
          label: 'Name',
          getValue: (one: Investigation) => one.metadata.name,
          render: (one: Investigation) => (
            <Link routeName={DETAIL} params={{ namespace: one.metadata.namespace ?? '', name: one.metadata.name }}>
              {plain(one.metadata.name, 253)}
            </Link>
          ),
        },
        'namespace',
        { id: 'alert', label: 'Alert type', getValue: (one: Investigation) => one.shown.alertType },
        { id: 'chain', label: 'Chain', getValue: (one: Investigation) => one.shown.chain },
        { id: 'phase', label: 'Phase', getValue: (one: Investigation) => one.shown.phase },
        { id: 'progress', label: 'Progress', getValue: (one: Investigation) => one.shown.progress },
        { id: 'confidence', label: 'Confidence', getValue: (one: Investigation) => one.shown.confidence },
        { id: 'finding', label: 'Finding', getValue: (one: Investigation) => one.shown.finding },
        'age',
      ]}
    />
  );
}

function Detail() {
  const { namespace, name } = useParams<{ namespace: string; name: string }>();
  return (
    <InvestigationView
      api={api}
      namespace={namespace}
      name={name}
      section={(title: string, content: ReactNode) => <SectionBox title={title}>{content}</SectionBox>}
    />
  );
}
