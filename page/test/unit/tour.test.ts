import { describe, expect, it } from 'vitest';
import { GREMLIN } from '../../src/gremlin/language';
import { SPARQL } from '../../src/sparql/language';
import { runsAtOnce, tourIn } from '../../src/tour';

describe('the saved queries of a server', () => {
  it('become steps in their order', () => {
    const answer = {
      title: 'Air routes',
      queries: [{ name: 'all', text: 'ASK {}' }, { name: 'walk', text: 'g.V()', language: 'gremlin', note: 'All.', view: 'profile', run: false }],
    };
    expect(tourIn(answer)).toEqual({
      title: 'Air routes',
      about: '',
      steps: [
        { name: 'all', text: 'ASK {}', language: 'sparql', note: '', view: null, run: null },
        { name: 'walk', text: 'g.V()', language: 'gremlin', note: 'All.', view: 'profile', run: false },
      ],
    });
  });

  it('have notes whose lines do not break behind the question mark of a variable', () => {
    const note = (text: string) => tourIn({ queries: [{ name: 'a', text: 'ASK {}', note: text }] })?.steps[0]?.note;
    expect(note('?vienna key:route ?b, and ~ ?ünter; why? Because?x')).toBe(
      '?\u2060vienna key:route ?\u2060b, and ~ ?\u2060ünter; why? Because?x',
    );
  });

  it('are absent from an older server or a list without queries', () => {
    for (const answer of [null, undefined, 7, {}, { queries: [] }, { queries: 'x' }, { queries: [7, { name: 'a' }, { name: 'a', text: 1 }] }]) {
      expect(tourIn(answer)).toBeNull();
    }
  });

  it('of a newer server are taken as far as this page knows them', () => {
    const queries = [{ name: 'a', text: 'MATCH (n)', language: 'cypher' }, { name: 'b', text: 'ASK {}', view: 'map' }];
    expect(tourIn({ queries })?.steps).toEqual([{ name: 'b', text: 'ASK {}', language: 'sparql', note: '', view: null, run: null }]);
    expect(tourIn({ queries })?.title).toBe('Queries of this server');
  });

  it('run by a click unless they change the data', () => {
    for (const [language, text, run, expected] of [
      [SPARQL, 'SELECT * {}', undefined, true],
      [SPARQL, 'DELETE WHERE { ?s ?p ?o }', undefined, false],
      [SPARQL, 'DELETE WHERE { ?s ?p ?o }', true, true],
      [SPARQL, 'SELECT * {}', false, false],
      [GREMLIN, 'g.V().drop()', undefined, false],
      [GREMLIN, 'g.V().count()', undefined, true],
    ] as const) {
      const step = tourIn({ queries: [{ name: 'a', text, language: language.id, run }] })?.steps[0];
      if (step === undefined) expect.fail('no step');
      expect(runsAtOnce(step, language), text).toBe(expected);
    }
  });
});
