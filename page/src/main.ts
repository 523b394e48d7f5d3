// Entry point: starts the console with its two languages.
import { start } from './app';
import { GREMLIN } from './gremlin/language';
import { SPARQL } from './sparql/language';
import './style/base.css';
import './style/cluster.css';
import './style/editor.css';
import './style/result.css';

const root = document.getElementById('app');
if (root !== null) start(root, [SPARQL, GREMLIN]);
